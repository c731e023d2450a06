"""Batches are the same for any number of ranks and workers, and after any stop."""

import json
import signal
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from tests.loader.batches import ROWS, following, global_batches, label_of, noisy, plain, run


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("prefetch", [1, 2, 9])
@pytest.mark.parametrize("worlds", [1, 3, 8])
def test_global_batches_are_the_same_for_any_topology(cats, dogs, workers, prefetch, worlds):
    order = ingot.mix(
        {"c": cats.shuffle(1).map(noisy).repeat(), "d": dogs.shuffle(2).map(noisy).repeat()},
        {"c": 2, "d": 1},
    )
    expected = [plain(ingot.Loader(order, 8, workers=0).batch(step)) for step in range(5)]
    options = {"workers": workers, "prefetch": prefetch}
    found, _ = global_batches(order, 5, worlds=worlds, global_batch_size=8, **options)
    assert found == expected


def test_a_state_of_one_number_of_ranks_resumes_on_another(cats):
    order = cats.shuffle(5).map(noisy).repeat()
    straight, _ = global_batches(order, 9, worlds=1, global_batch_size=10)
    state, found = None, []
    for worlds, count in ((2, 3), (5, 1), (1, 2), (3, 3)):
        options = {"worlds": worlds, "first": state, "global_batch_size": 10}
        batches, state = global_batches(order, count, **options)
        found += batches
    assert found == straight


@pytest.mark.parametrize("endless", [False, True])
def test_a_run_continues_with_the_next_sample_when_the_number_of_ranks_changes(cats, endless):
    """With batch_size on each rank, the steps of another number of ranks begin elsewhere."""
    order = cats.shuffle(5).map(label_of)
    order = order.repeat() if endless else order
    samples = list(cats.shuffle(5).map(label_of).repeat(3))
    state, found = None, []
    for worlds, count in ((3, 2), (2, 2), (5, 1), (4, 2), (1, 6), (3, 1)):
        options = {"worlds": worlds, "first": state, "batch_size": 3}
        batches, state = global_batches(order, count, **options)
        found += [label for batch in batches for label in batch]
        assert state["position"] == len(found)
    assert found == samples[: len(found)]
    assert len(found) > ROWS


def test_the_state_counts_what_was_handed_out():
    loader = ingot.Loader(range(100), 10, workers=2, prefetch=5)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    state = loader.state_dict()
    assert (state["step"], state["position"]) == (3, 30)
    again = ingot.Loader(range(100), 10)
    again.load_state_dict(json.loads(json.dumps(state)))
    assert next(iter(again)).tolist() == next(batches).tolist() == list(range(30, 40))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_sample_is_lost_or_repeated_whatever_ranks_and_batch_sizes_follow(data):
    length = data.draw(st.integers(1, 40))
    order = ingot.Order.of(range(length)).shuffle(data.draw(st.integers(0, 3)))
    state, found = None, []
    for _ in range(data.draw(st.integers(2, 5))):
        world = data.draw(st.integers(1, 5))
        rank = data.draw(st.integers(0, world - 1))
        loader = ingot.Loader(order, data.draw(st.integers(1, 9)), shard=(rank, world), workers=0)
        if state is not None:
            loader.load_state_dict(state)
            assert loader.epoch == state["position"] // length
        for _, batch in zip(range(data.draw(st.integers(1, 6))), following(loader), strict=False):
            rows = loader.indices(loader.step - 1).row.tolist()
            assert set(batch.tolist()) <= set(rows)
            found += rows
        state = json.loads(json.dumps(loader.state_dict()))
        assert state["position"] == len(found)
        assert state["step"] % len(loader) == 0 or len(found) % length
    assert found == order.repeat().rows(0, len(found)).row.tolist()


@pytest.mark.parametrize("how", [{"workers": 2}, {"processes": 1}], ids=["threads", "processes"])
def test_a_state_resumes_with_another_batch_size_at_any_position(how):
    loader = ingot.Loader(range(100), 10)
    loader.seek(3)
    with ingot.Loader(range(100), 25, **how) as other:
        assert len(list(other)) == 4
        other.load_state_dict(loader.state_dict())
        assert (other.step, other.epoch, len(other)) == (1, 0, 4)
        assert [[batch[0], batch[-1]] for batch in other] == [[30, 54], [55, 79], [80, 99]]
        assert [[batch[0], batch[-1]] for batch in other] == [[0, 24], [25, 49], [50, 74], [75, 99]]
        assert other.step == 8


def test_steps_after_a_resume_keep_their_numbers_and_batches():
    loader = ingot.Loader(range(100), 10)
    loader.seek(3)
    state = loader.state_dict()
    loader = ingot.Loader(range(100), 25)
    loader.load_state_dict(state)
    straight = [loader.batch(step).tolist() for step in range(1, 9)]
    assert [loader.indices(step).row.tolist() for step in range(1, 9)] == straight
    assert [len(one) for one in straight] == [25, 25, 20, 25, 25, 25, 25, 25]
    for step in range(2, 8):
        loader.seek(step)
        again = ingot.Loader(range(100), 25)
        again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        assert again.step == step
        assert [again.batch(k).tolist() for k in range(step, 9)] == straight[step - 1 :]
    loader.skip(2, 3)
    loader.seek(1)
    assert [batch[0] for batch in loader] == [30, 80]


def test_a_seek_to_before_the_resumed_step_cuts_the_epoch_from_its_beginning():
    loader = ingot.Loader(range(100), 10)
    loader.seek(3)
    state = loader.state_dict()
    for order in (range(100), ingot.Order.of(range(100)).repeat()):
        other = ingot.Loader(order, 25)
        other.load_state_dict(state | {"fingerprint": other.state_dict()["fingerprint"]})
        other.seek(0)
        batches = iter(other)
        assert [next(batches)[0] for _ in range(4)] == [0, 25, 50, 75]


def test_an_incomplete_batch_at_the_end_of_an_epoch_is_dropped():
    loader = ingot.Loader(range(100), 10)
    loader.seek(9)
    other = ingot.Loader(range(100), 30, drop_last=True)
    other.load_state_dict(loader.state_dict())
    assert (other.step, other.epoch) == (3, 1)
    assert [batch[0] for batch in other] == [0, 30, 60]


def test_any_step_is_reached_at_once(cats):
    loader = ingot.Loader(cats.shuffle(3).repeat(), 32)
    loader.seek(10**9)
    batch = next(iter(loader))
    assert batch["label"].tolist() == loader.indices(10**9).row.tolist()
    assert loader.step == 10**9 + 1
    assert loader.indices(10**9).epoch[0] == 32 * 10**9 // ROWS


def test_batch_and_indices_leave_the_loader_where_it_is(cats):
    loader = ingot.Loader(cats.shuffle(3), 3, shard=(1, 2))
    loader.seek(2)
    assert loader.batch(7)["label"].tolist() == loader.indices(7).row[3:].tolist()
    assert loader.step == 2


def test_steps_are_left_out_and_the_others_keep_their_batches():
    loader = ingot.Loader(range(100), 10, workers=2)
    batches = iter(loader)
    assert next(batches)[0] == 0
    loader.skip(2, 5)
    loader.skip(4, 6)
    loader.skip(9, 10)
    assert [batch[0] for batch in batches] == [10, 60, 70, 80]
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["skipped"] == [[2, 6], [9, 10]]
    again = ingot.Loader(range(100), 10)
    again.load_state_dict(state)
    again.seek(0)
    assert [batch[0] for batch in again] == [0, 10, 60, 70, 80]
    assert again.epoch == 1
    with pytest.raises(ValueError, match=r"steps of 10 samples.*pass global_batch_size=10"):
        ingot.Loader(range(100), 5).load_state_dict(state)


def test_functions_go_by_their_names_and_plain_arguments(cats):
    def scaled(row, k):
        return row["label"] * k

    def same(row, k):
        return row["label"] * k

    same.__qualname__, same.__module__ = scaled.__qualname__, "elsewhere"
    state = ingot.Loader(cats.map(partial(scaled, k=2)), 10).state_dict()
    ingot.Loader(cats.map(partial(same, k=2)), 10).load_state_dict(state)
    with pytest.raises(ValueError, match=r"scaled\(k=2\).*scaled\(k=3\)"):
        ingot.Loader(cats.map(partial(scaled, k=3)), 10).load_state_dict(state)


def test_a_state_of_another_order_is_rejected_with_the_difference(cats):
    state = ingot.Loader(cats.shuffle(1).repeat(), 4).state_dict()
    other = ingot.Loader(cats.shuffle(2).repeat(), 4)
    with pytest.raises(
        ValueError,
        match=r"another order: it has shuffle\(seed=1\), this loader has shuffle\(seed=2\)",
    ):
        other.load_state_dict(state)
    for wrong in ({}, {"step": 3}, {**state, "position": -1}, None):
        with pytest.raises(TypeError, match="expected what state_dict"):
            other.load_state_dict(wrong)
    with pytest.raises(ValueError, match="version 3, this Ingot reads up to 2"):
        other.load_state_dict({**state, "version": 3})


def test_a_state_of_an_older_order_algorithm_is_rejected_by_its_version():
    old = {
        "version": 1,
        "position": 30,
        "step": 3,
        "batch_size": 10,
        "fingerprint": "83ae1fe0a7ab2ba5",
        "order": {"kind": "source", "type": "range", "rows": 100},
    }
    loader = ingot.Loader(range(100), 10)
    with pytest.raises(
        ValueError, match=r"the state is of order algorithm version 1, this release has 2: .*seek"
    ):
        loader.load_state_dict(old)
    assert loader.step == 0


def test_verify_resume_finds_what_depends_on_more_than_its_sample(cats):
    good = ingot.Loader(cats.shuffle(1).map(noisy), 8)
    good.seek(3)
    assert good.verify_resume(steps=9, resumes=3) >= 9
    assert good.step == 3
    random = np.random.default_rng()
    bad = ingot.Loader(cats.map(lambda row: {**row, "x": random.normal()}), 8)
    with pytest.raises(ValueError, match=r"step 0 differs when it is read again, in batch\['x'\]"):
        bad.verify_resume()
    assert ingot.Loader(cats, 8, drop_last=False).verify_resume() >= 16


KILLED = """
import json, os, sys, ingot
folder, world, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
order = ingot.open(folder).shuffle(4).repeat()
loaders = [ingot.Loader(order, global_batch_size=6, shard=(rank, world)) for rank in range(world)]
if os.path.exists(path):
    with open(path) as file:
        state = json.load(file)["state"]
    for loader in loaders:
        loader.load_state_dict(state)
for _, parts in zip(range(int(sys.argv[4])), zip(*loaders)):
    batch = [label for one in parts for label in one["label"].tolist()]
    with open(path + ".new", "w") as file:
        json.dump({"state": loaders[0].state_dict(), "batch": batch}, file)
    os.replace(path + ".new", path)
    print(json.dumps(batch), flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_killed_job_resumes_on_another_number_of_ranks(folder, tmp_path, cats):
    seen = []
    for world, count in ((1, 3), (2, 2), (3, 4)):
        outcome = run(KILLED, folder / "cats", world, tmp_path / "state.json", count)
        assert outcome.returncode == -signal.SIGKILL, outcome.stderr
        seen += map(json.loads, outcome.stdout.splitlines())
    loader = ingot.Loader(cats.shuffle(4).repeat(), 6)
    assert seen == [loader.batch(step)["label"].tolist() for step in range(9)]


def keep(sample, rng):
    return sample, int(rng.integers(1 << 30))


def orders():
    leaves = st.integers(1, 30).map(lambda n: ingot.Order.of(range(n)))

    def steps(inner):
        seeds = st.integers(0, 3)
        return st.one_of(
            st.builds(lambda one, seed: one.shuffle(seed), inner, seeds),
            st.builds(lambda one, times: one.repeat(times), inner, st.integers(1, 3)),
            st.builds(lambda one, seed: one.map(keep, seed=seed), inner, seeds),
            st.builds(lambda one, n: one.skip(min(n, len(one) - 1)), inner, st.integers(0, 3)),
            st.builds(ingot.interleave, inner, inner),
            st.builds(ingot.concat, inner, inner),
        )

    finite = st.recursive(leaves, steps, max_leaves=4).filter(lambda one: len(one) <= 2000)
    batched = st.builds(lambda one, size: one.batch(size).map(keep), finite, st.integers(1, 3))
    endless = finite.map(lambda one: one.repeat())
    mixed = st.builds(
        lambda a, b, weights: ingot.mix({"a": a, "b": b}, {"a": weights[0], "b": weights[1]}),
        endless,
        endless,
        st.tuples(st.integers(1, 5), st.integers(1, 5)),
    )
    return st.one_of(finite, batched, batched.map(lambda one: one.repeat()), endless, mixed)


def check_resumes(data):
    order = data.draw(orders())
    length = 100 if order.is_infinite else len(order)
    batch_size = data.draw(st.integers(1, min(length, 12)))
    drop_last = data.draw(st.booleans())
    straight = ingot.Loader(order, batch_size, workers=0, collate=list, drop_last=drop_last)
    first = data.draw(st.sampled_from([0, 0, 0, 10**6]))
    counts = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    expected = [plain(straight.batch(first + k)) for k in range(sum(counts))]
    straight.seek(first)
    state, found = straight.state_dict(), []
    for count in counts:
        worlds = data.draw(st.integers(1, min(batch_size, 4)))
        options = {
            "workers": data.draw(st.integers(0, 2)),
            "prefetch": data.draw(st.integers(1, 4)),
        }
        options |= {"worlds": worlds, "first": state, "collate": list, "drop_last": drop_last}
        batches, state = global_batches(order, count, global_batch_size=batch_size, **options)
        found += batches
    assert found == expected
    assert state["step"] == first + sum(counts)


@settings(max_examples=1000, deadline=None)
@given(data=st.data())
def test_any_pipeline_resumes_exactly_on_any_topology_after_any_stop(data):
    check_resumes(data)


@pytest.mark.soak
@settings(max_examples=5000, deadline=None)
@given(data=st.data())
def test_many_pipelines_resume_exactly_on_any_topology_after_any_stop(data):
    check_resumes(data)


def test_left_out_steps_of_other_epochs_are_rejected():
    first = ingot.Loader(range(100), 30, drop_last=True)
    first.skip(4, 5)
    state = json.loads(json.dumps(first.state_dict()))
    with pytest.raises(ValueError, match=r"steps of a loader with drop_last=True: pass that"):
        ingot.Loader(range(100), 30).load_state_dict(state)
    ingot.Loader(range(100), 30, drop_last=True).load_state_dict(state)


@pytest.mark.parametrize(
    "change",
    [
        {"position": 10**400},
        {"position": True},
        {"version": -1},
        {"version": True},
        {"step": "3"},
        {"step": -1},
        {"step": None},
        {"global_batch_size": -10},
        {"global_batch_size": 0},
        {"global_batch_size": True},
        {"fingerprint": 3},
        {"drop_last": 1},
        {"skipped": None},
        {"skipped": 5},
        {"skipped": [5]},
        {"skipped": [["a", "b"]]},
        {"skipped": [[1, 2, 3]]},
        {"skipped": [[0, 2**70]]},
        {"skipped": [[5, 1]]},
    ],
    ids=str,
)
def test_invalid_states_are_rejected(change):
    loader = ingot.Loader(range(100), 10)
    (key,) = change
    with pytest.raises(
        TypeError, match=rf"expected what state_dict\(\) returned, whose '{key}' is "
    ) as caught:
        loader.load_state_dict(loader.state_dict() | change)
    assert "of': " not in str(caught.value)  # It does not show the whole state.
    assert loader.step == 0


@pytest.mark.parametrize("order", [{}, {"of": {}}, {"kind": "map", "function": 3}, {"of": 5}, 3])
def test_a_state_whose_order_makes_no_sense_is_of_another_order(order):
    loader = ingot.Loader(range(100), 10)
    state = loader.state_dict() | {"fingerprint": "0" * 16, "order": order}
    with pytest.raises(ValueError, match=r"^the state is of another order$"):
        loader.load_state_dict(state)
