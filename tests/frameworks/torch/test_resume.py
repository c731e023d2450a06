"""PyTorch's data loaders along an order resume exactly, with any number of workers and ranks."""

import json
import os
import signal

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import ingot
import ingot.torch

# There may be fewer cores than workers.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")

ROWS = 50
BATCH = 6
PER_EPOCH = -(-ROWS // BATCH)


def noisy(row, rng):
    return {"label": row["label"], "noise": torch.tensor(rng.integers(1 << 40))}


def refuse_31(row):
    if row["label"] == 31:
        message = "not this one"
        raise ValueError(message)
    return row["label"]


def label_of(row):
    return row["label"]


@pytest.fixture(autouse=True)
def no_ranks(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    path = tmp_path_factory.mktemp("torch") / "numbers"
    spec = {"label": "int", "image": "array(uint8,4,4)", "text": "utf8"}
    with ingot.DatasetWriter(path, spec, sync=False) as writer:
        for k in range(ROWS):
            writer.append({"label": k, "image": np.full((4, 4), k, np.uint8), "text": f"t{k}"})
    return ingot.open(path)


@pytest.fixture(scope="module")
def order(ds):
    return ds.shuffle(3).map(noisy)


def plain(batch):
    """Return a batch as nested lists."""
    if isinstance(batch, dict):
        return {key: plain(one) for key, one in batch.items()}
    return batch.tolist() if isinstance(batch, torch.Tensor) else batch


def straight(order, first, stop):
    """Return the batches of steps as Ingot's own loader makes them."""
    loader = ingot.Loader(order, BATCH, workers=0, to="torch")
    return [plain(loader.batch(step)) for step in range(first, stop)]


def workers(count, **options):
    """Return the options of a loader with some workers, which start by fork."""
    start = {"multiprocessing_context": "fork"} if count else {}
    return {"num_workers": count} | start | options


def taken(loader, count):
    """Return the batches of a loader in its next loops, over the ends of epochs."""
    found = []
    while len(found) < count:
        for batch in loader:
            found.append(plain(batch))
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("num_workers", [0, 2])
def test_batches_match_ingots_own_loader(ds, order, num_workers):
    for one in (order, ds.shuffle(1), ds, ds.shuffle(1).repeat()):
        loader = ingot.torch.DataLoader(one, BATCH, **workers(num_workers))
        assert taken(loader, 2 * PER_EPOCH) == straight(one, 0, 2 * PER_EPOCH)
        assert loader.step == 2 * PER_EPOCH
    columns = next(iter(ingot.torch.DataLoader(ds, BATCH, **workers(num_workers))))
    assert columns["image"].dtype == torch.uint8
    assert columns["image"].shape == (BATCH, 4, 4)
    assert columns["text"] == [f"t{k}" for k in columns["label"].tolist()]


def test_a_run_changes_its_loader_and_its_workers_at_every_checkpoint(order):
    """The state goes through JSON, as in a checkpoint, from each kind of loader to the next."""

    def loader_of(kind, num_workers):
        if kind == "ingot":
            return ingot.Loader(order, BATCH, workers=num_workers, to="torch")
        if kind == "torch":
            return ingot.torch.DataLoader(order, BATCH, **workers(num_workers, prefetch_factor=3))
        if kind == "none":
            return ingot.torch.DataLoader(order, BATCH)
        return stateful(order, num_workers)[0]

    def load(loader, state):
        if isinstance(loader, StatefulDataLoader):
            loader.sampler.load_state_dict(state)
        else:
            loader.load_state_dict(state)

    plan = [("none", 0, 3), ("torch", 2, 4), ("stateful", 3, 2), ("torch", 3, 5), ("ingot", 2, 1),
            ("stateful", 0, 4), ("stateful", 2, 3), ("torch", 1, 6), ("none", 0, 2)]  # fmt: skip
    state, found = None, []
    for kind, num_workers, count in plan:
        loader = loader_of(kind, num_workers)
        if state is not None:
            load(loader, json.loads(json.dumps(state)))
        found += taken(loader, count)
        state = loader.state_dict()
    assert found == straight(order, 0, sum(count for _, _, count in plan))


def stateful(order, num_workers, **options):
    """Return torchdata's loader over an order, and its sampler."""
    dataset = ingot.torch.Dataset(order)
    sampler = ingot.torch.Sampler(dataset, BATCH)
    options = {"sampler": sampler, "batch_size": None} | workers(num_workers, **options)
    return StatefulDataLoader(dataset, **options), sampler


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("stop", [1, 5, PER_EPOCH - 1])
def test_torchdatas_loader_resumes_by_its_own_state(order, num_workers, every, stop):
    loader, _ = stateful(order, num_workers, snapshot_every_n_steps=every)
    found = taken(loader, stop)
    state = json.loads(json.dumps(loader.state_dict()))
    again, _ = stateful(order, num_workers, snapshot_every_n_steps=every)
    again.load_state_dict(state)
    rest = [plain(batch) for epoch in range(2) for batch in again]
    assert found + rest == straight(order, 0, 2 * PER_EPOCH)


@pytest.mark.parametrize("num_workers", [0, 1])
def test_torchdatas_loader_resumes_between_epochs(order, num_workers):
    loader, _ = stateful(order, num_workers, persistent_workers=num_workers > 0)
    first = [plain(batch) for batch in loader]
    ended = json.loads(json.dumps(loader.state_dict()))
    again, sampler = stateful(order, num_workers)
    again.load_state_dict(ended)
    second = [plain(batch) for batch in again]
    assert first + second == straight(order, 0, 2 * PER_EPOCH)
    sampler.load_state_dict(again.state_dict())
    assert (sampler.step, sampler.epoch) == (2 * PER_EPOCH, 2)


def test_torchdatas_loader_ends_an_epoch_whose_last_batch_was_saved(order):
    loader, _ = stateful(order, 0)
    batches = iter(loader)
    for _ in range(PER_EPOCH):
        next(batches)
    again, _ = stateful(order, 0)
    again.load_state_dict(loader.state_dict())
    assert list(again) == []
    assert taken(again, 1) == straight(order, PER_EPOCH, PER_EPOCH + 1)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loader_of_pytorch_resumes_if_the_caller_counts(order, num_workers):
    dataset = ingot.torch.Dataset(order)
    sampler = ingot.torch.Sampler(dataset, BATCH)
    options = {"sampler": sampler, "batch_size": None} | workers(num_workers)
    found = []
    for step, batch in enumerate(DataLoader(dataset, **options), sampler.step):
        found.append(plain(batch))
        if step == 3:
            state = json.loads(json.dumps(sampler.state_at(step + 1)))
            break
    assert state == {**ingot.Loader(order, BATCH).state_dict(), "step": 4, "position": 24}
    sampler = ingot.torch.Sampler(dataset, BATCH)
    sampler.load_state_dict(state)
    options |= {"sampler": sampler}
    found += taken(DataLoader(dataset, **options), PER_EPOCH)
    assert found == straight(order, 0, 4 + PER_EPOCH)


def test_a_sampler_makes_batches_for_pytorchs_own_collation(ds):
    dataset = ingot.torch.Dataset(ds.shuffle(2), label_of)
    sampler = ingot.torch.Sampler(dataset, BATCH)
    loader = DataLoader(dataset, batch_sampler=sampler, **workers(2))
    assert len(loader) == PER_EPOCH
    rows = ds.shuffle(2).repeat(2).rows(0, 2 * ROWS).row.tolist()
    assert torch.cat([*loader, *loader]).tolist() == rows


def test_a_loop_over_a_sampler_is_an_epoch_even_if_it_is_left(ds):
    sampler = ingot.torch.Sampler(ds, 10, shard=None)
    for _ in sampler:
        break
    assert sampler.step == 5
    assert next(iter(sampler)) == ingot.torch.Positions(50, 60)
    sampler.set_epoch(1)
    assert [batch.start for batch in sampler] == [50, 60, 70, 80, 90]
    sampler.seek(12)
    sampler.set_epoch(2)
    assert [batch.start for batch in sampler] == [120, 130, 140]
    sampler.set_epoch(2)
    assert sampler.step == 10


def test_a_sampler_does_not_guess_where_a_loop_without_end_was_left(ds):
    dataset = ingot.torch.Dataset(ds.repeat())
    sampler = ingot.torch.Sampler(dataset, 10)
    loader = DataLoader(dataset, sampler=sampler, batch_size=None)
    assert [batch["label"][0] for _, batch in zip(range(7), loader, strict=False)][5] == 0
    with pytest.raises(RuntimeError, match=r"call seek\(step\) before the next loop"):
        next(iter(loader))
    sampler.seek(7)
    assert next(iter(loader))["label"].tolist() == list(range(20, 30))
    with pytest.raises(TypeError, match="an infinite order has no number of steps"):
        len(sampler)


def test_positions_are_not_taken_for_rows(ds):
    """Row 7 of the data set is not what an order has at position 7."""
    sampler = ingot.torch.Sampler(ds.shuffle(1), 10)
    assert len(next(iter(sampler))) == 10
    for dataset in (ds, ds.shuffle(1), list(ds)):
        for options in ({"sampler": sampler, "batch_size": None}, {"batch_sampler": sampler}):
            with pytest.raises(TypeError, match=r"Dataset\(order\) to the data loader|Positions"):
                next(iter(DataLoader(dataset, **options)))


@pytest.mark.parametrize("options", [{}, {"batch_size": 10}])
def test_a_sampler_in_a_loader_that_makes_batches_itself_is_rejected(ds, options):
    dataset = ingot.torch.Dataset(ds.shuffle(1))
    loader = DataLoader(dataset, sampler=ingot.torch.Sampler(dataset, 10), **options)
    with pytest.raises(TypeError, match="pass batch_size=None to the data loader"):
        next(iter(loader))


def test_a_sampler_has_no_state_dict_that_could_be_ahead():
    assert not hasattr(ingot.torch.Sampler(range(9), 3), "state_dict")


def test_the_state_counts_what_was_handed_out_not_what_workers_have_read(order):
    loader = ingot.torch.DataLoader(order, BATCH, **workers(2, prefetch_factor=8))
    taken(loader, 2)
    assert (loader.step, loader.state_dict()["position"]) == (2, 2 * BATCH)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_every_start_method_resume_and_persist(ds, method):
    order = ds.shuffle(7)
    options = {"num_workers": 2, "multiprocessing_context": method, "persistent_workers": True}
    loader = ingot.torch.DataLoader(order, BATCH, **options)
    loader.seek(5)
    found = [plain(batch) for epoch in range(3) for batch in loader]
    loader.seek(2)
    assert found + taken(loader, 1) == [
        *straight(order, 5, 3 * PER_EPOCH),
        *straight(order, 2, 3),
    ]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_function_that_cannot_be_sent_to_workers_is_named(ds, method):
    order = ds.map(lambda row: row["label"])
    loader = ingot.torch.DataLoader(order, BATCH, num_workers=1, multiprocessing_context=method)
    with pytest.raises(TypeError, match=r"lambda.*top level of a module, or use ingot.Loader"):
        iter(loader)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loop_that_was_left_continues_after_a_seek_to_its_step(order, num_workers):
    options = workers(num_workers, persistent_workers=num_workers > 0)
    loader = ingot.torch.DataLoader(order, BATCH, **options)
    found = []
    for count in (1, 3, 2, 5):
        found += taken(loader, count)
        loader.seek(loader.step)
    assert found == straight(order, 0, 11)
    assert loader.epoch == 1


@pytest.mark.parametrize("num_workers", [0, 2])
def test_after_an_error_the_loader_is_at_the_step_that_failed(ds, num_workers):
    options = workers(num_workers, persistent_workers=num_workers > 0)
    loader = ingot.torch.DataLoader(ds.map(refuse_31), 10, **options)
    batches = iter(loader)
    assert [next(batches)[0].item() for _ in range(3)] == [0, 10, 20]
    for _ in range(2):  # The step is tried again.
        with pytest.raises(ValueError, match="not this one"):
            next(batches)
        assert loader.step == 3
    loader.seek(4)
    assert [batch.tolist() for batch in batches] == [list(range(40, 50))]


@pytest.mark.parametrize("persistent", [False, True])
def test_after_a_worker_was_killed_the_loop_continues_with_others(order, persistent):
    loader = ingot.torch.DataLoader(order, BATCH, **workers(2, persistent_workers=persistent))
    batches = iter(loader)
    found = [plain(next(batches))]
    for worker in batches._batches._workers:
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=r"worker.*killed|exited unexpectedly"):
        found.extend(map(plain, batches))
    assert loader.step == len(found)
    found += map(plain, batches)
    assert found == straight(order, 0, PER_EPOCH)


def test_steps_that_ingots_loader_leaves_out_are_left_out(ds):
    own = ingot.Loader(ds.map(label_of), 10)
    own.skip(1, 3)
    own.skip(4, 6)
    loader = ingot.torch.DataLoader(ds.map(label_of), 10, **workers(2))
    loader.load_state_dict(own.state_dict())
    assert [batch[0].item() for epoch in range(2) for batch in loader] == [0, 30, 10, 20, 30, 40]
    assert loader.state_dict()["skipped"] == [[1, 3], [4, 6]]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_collate_function_gets_the_samples(ds, num_workers):
    loader = ingot.torch.DataLoader(ds.map(label_of), 4, collate_fn=sum, **workers(num_workers))
    assert len(loader) == 13
    assert [*loader][::12] == [6, 48 + 49]


def test_tensors_of_every_kind_arrive_from_workers():
    samples = [
        {
            "small": torch.full((3,), k, dtype=torch.bfloat16),
            "large": torch.full((100_000,), k),
            "flag": k == 1,
            "array": np.full(2, k, np.float16),
            "nested": (torch.tensor(k, dtype=torch.uint8), f"t{k}"),
        }
        for k in range(4)
    ]
    direct = next(iter(ingot.torch.DataLoader(ingot.Order.of(samples), 4)))
    sent = next(iter(ingot.torch.DataLoader(ingot.Order.of(samples), 4, **workers(1))))
    assert sent.keys() == direct.keys()
    for name in ("small", "large", "flag", "array"):
        assert sent[name].dtype == direct[name].dtype
        assert torch.equal(sent[name], direct[name])
    assert torch.equal(sent["nested"][0], torch.arange(4, dtype=torch.uint8))
    assert sent["nested"][1] == ["t0", "t1", "t2", "t3"]
    sent["array"][0] = 5  # PyTorch writes where it wants


@pytest.mark.parametrize("worlds", [1, 2, 4])
def test_ranks_share_each_batch(ds, worlds):
    loaders = [
        ingot.torch.DataLoader(ds.shuffle(1).map(label_of), 8 // worlds, shard=(rank, worlds))
        for rank in range(worlds)
    ]
    shared = [
        ingot.torch.DataLoader(
            ds.shuffle(1).map(label_of), global_batch_size=8, shard=(rank, worlds)
        )
        for rank in range(worlds)
    ]
    steps = [torch.cat(parts).tolist() for parts in zip(*loaders, strict=True)]
    one = ingot.Loader(ds.shuffle(1).map(label_of), 8)
    whole = [batch.tolist() for batch in one]
    assert steps[:-1] == whole[:-1]
    assert set(steps[-1]) == set(whole[-1])  # Two samples: with four ranks, each comes twice.
    assert [torch.cat(parts).tolist() for parts in zip(*shared, strict=True)] == steps
    assert {json.dumps(loader.state_dict()) for loader in loaders} == {json.dumps(one.state_dict())}


def test_items_of_an_order_are_its_samples(ds):
    dataset = ingot.torch.Dataset(ds.shuffle(4), label_of)
    expected = [row["label"] for row in ds.shuffle(4)]
    assert list(dataset) == expected
    assert dataset.__getitems__([3, -1]) == [expected[3], expected[-1]]
    with pytest.raises(IndexError, match="position 50 is out of range"):
        dataset[ROWS]
    assert repr(dataset) == f"<ingot.torch.Dataset of {ds.shuffle(4)!r}>"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shuffle": True}, TypeError, r"not shuffle=: shuffle the order: order\.shuffle\(seed\)"),
        ({"sampler": [1]}, TypeError, "not sampler=: say which samples in the order"),
        ({"batch_sampler": [[1]]}, TypeError, "not batch_sampler=: say which samples"),
        ({"in_order": False}, ValueError, "no place to resume at: in_order=True"),
        ({"shard": (2, 2)}, ValueError, "rank 2 of 2"),
        ({"batch_size": 51, "drop_last": True}, ValueError, "no whole batch of 51"),
        ({"batch_size": None}, TypeError, "global_batch_size=, the number on all ranks"),
        ({"global_batch_size": 10}, TypeError, "all ranks together, got both"),
        ({"workers": 2}, TypeError, "workers"),
    ],
)
def test_natural_mistakes_get_exact_messages(ds, options, error, message):
    with pytest.raises(error, match=message):
        ingot.torch.DataLoader(ds, **{"batch_size": 10, **options})


def test_a_generator_in_place_of_a_data_set_is_rejected():
    with pytest.raises(TypeError, match="made of a sequence, not of generator"):
        ingot.torch.DataLoader((k for k in range(9)), batch_size=3)
    with pytest.raises(TypeError, match="expected a data set, an order or a path, got generator"):
        ingot.torch.Dataset(k for k in range(9))


def test_paths_and_other_sequences_are_taken(ds):
    loaders = [ds, ds.path, [ds.path], range(30), list(range(30)), np.arange(30)]
    for one in loaders:
        loader = ingot.torch.DataLoader(one, batch_size=10)
        batch = next(iter(loader))
        assert len(batch["label"] if isinstance(batch, dict) else batch) == 10


def test_a_loader_shows_its_step_and_its_order(ds):
    loader = ingot.torch.DataLoader(ds.shuffle(1), batch_size=10)
    next(iter(loader))
    assert repr(loader).startswith("<ingot.torch.DataLoader at step 1, <ingot.torch.Sampler of")
    assert "10 samples on this rank and 10 on all ranks, rank 0 of 1 (no ranks" in repr(loader)
    assert "shuffle(seed=1)" in repr(loader)


def test_a_state_of_another_order_is_rejected_with_the_difference(ds):
    state = ingot.Loader(ds.shuffle(1), 10).state_dict()
    for one in (ingot.torch.DataLoader(ds.shuffle(2), 10), ingot.torch.Sampler(ds.shuffle(2), 10)):
        with pytest.raises(ValueError, match=r"it has shuffle\(seed=1\), this .* shuffle\(seed=2"):
            one.load_state_dict(state)
        with pytest.raises(TypeError, match="expected what state_dict"):
            one.load_state_dict({"_snapshot": {}})
        with pytest.raises(ValueError, match="a step is at least 0"):
            one.seek(-1)
