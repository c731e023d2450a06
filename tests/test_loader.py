"""Batches along an order are the same for any number of ranks and workers, and after any stop."""

import gc
import json
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections import namedtuple
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from ingot.loader import LoaderStats, Replacement
from ingot.loader.pipeline import NAME

ROWS = 60
Pair = namedtuple("Pair", "a b")  # noqa: PYI024 -- as old code has them


def noisy(sample, rng):
    return {"label": sample["label"], "noise": rng.integers(1 << 40)}


def label_of(sample):
    return sample["label"]


def refuse_sevens(sample):
    if sample["label"] % 10 == 7:
        message = f"no {sample['label']}"
        raise KeyError(message)
    return sample["label"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loader")
    spec = {"label": "int", "image": "array(uint8,2,3)", "words": "utf8[]", "deep": {"x": "float"}}
    for name, first in (("cats", 0), ("dogs", 1000)):
        with ingot.DatasetWriter(folder / name, spec, sync=False) as writer:
            for k in range(first, first + ROWS):
                image = np.full((2, 3), k % 256, np.uint8)
                words = [f"{k}/{j}" for j in range(k % 5)]
                writer.append({"label": k, "image": image, "words": words, "deep": {"x": k / 2}})
    with ingot.Writer(folder / "logs.ingot", sync=False) as writer:
        writer.extend(b"%d" % k for k in range(ROWS))
    return folder


@pytest.fixture(scope="module")
def cats(folder):
    return ingot.open(folder / "cats")


@pytest.fixture(scope="module")
def dogs(folder):
    return ingot.open(folder / "dogs")


@pytest.fixture(scope="module")
def logs(folder):
    return ingot.open(folder / "logs.ingot")


@pytest.fixture(autouse=True)
def no_ranks(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


def threads_of_loaders():
    return [one for one in threading.enumerate() if one.name.startswith(NAME)]


def plain(batch):
    """Return a batch as nested lists."""
    match batch:
        case dict():
            return {key: plain(one) for key, one in batch.items()}
        case list() | tuple():
            return [plain(one) for one in batch]
        case np.ndarray() | torch.Tensor() | np.generic():
            return batch.tolist()
    return batch


def joined(parts):
    """Return the batch of a step from the parts of all ranks."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: joined([one[key] for one in parts]) for key in first}
    return [one for part in parts for one in part]


def global_batches(order, batch_size, count, *, worlds, first=None, **options):
    """Return `count` batches, read by as many ranks, from the state `first` on; and the state."""
    loaders = [
        ingot.Loader(order, batch_size, shard=(rank, worlds), **options) for rank in range(worlds)
    ]
    found = []
    for loader in loaders:
        with loader:
            if first is not None:
                loader.load_state_dict(json.loads(json.dumps(first)))
            found.append([plain(next(iter(loader))) for _ in range(count)])
    states = [loader.state_dict() for loader in loaders]
    assert all(state == states[0] for state in states)
    return [joined(parts) for parts in zip(*found, strict=True)], states[0]


def test_a_batch_of_a_data_set_has_its_columns(cats):
    loader = ingot.Loader(cats.shuffle(1), 8)
    for step, batch in enumerate(loader):
        rows = loader.indices(step).row
        expected = cats[rows]
        assert batch.keys() == expected.keys()
        assert batch["label"].tolist() == rows.tolist()
        assert (batch["image"] == expected["image"]).all()
        assert batch["image"].shape == (8, 2, 3)
        assert batch["words"] == expected["words"]
        assert batch["deep"]["x"].tolist() == (rows / 2).tolist()
    assert step == len(loader) - 1 == 6


def test_columns_are_those_that_rows_would_be_collated_to(cats, dogs):
    orders = [
        cats.shuffle(0),
        ingot.mix({"c": cats.repeat(), "d": dogs.shuffle(1).repeat()}, {"c": 1, "d": 2}),
        cats.window("words", length=2).shuffle(2),
        ingot.concat(cats.select("label", "words"), dogs.select("words", "label")),
        ingot.interleave(cats, dogs, cats.skip(3)),
        ingot.interleave(cats, cats.window("words", length=2)),
    ]
    for order in orders:
        columns, rows = ingot.Loader(order, 7), ingot.Loader(order.map(dict), 7)
        for step in range(4):
            assert plain(columns.batch(step)) == plain(rows.batch(step))
            assert plain(columns.batch(step)) == plain(ingot.Loader(order, 7).batch(step))


def test_records_and_other_sequences_come_as_lists_or_arrays(logs):
    assert next(iter(ingot.Loader(logs, 3))) == [b"0", b"1", b"2"]
    assert next(iter(ingot.Loader(logs[5:9], 3))) == [b"5", b"6", b"7"]
    assert next(iter(ingot.Loader(range(9), 3))).tolist() == [0, 1, 2]


def test_samples_with_different_fields_are_no_batch(cats):
    loader = ingot.Loader([{"a": 1}, {"b": 2}], 2)
    message = r"different fields, \['a'\] and \['b'\]: map them to the same fields"
    with pytest.raises(ingot.WorkerError, match=message):
        next(iter(loader))
    mixed = ingot.mix(
        {"some": cats.select("label").repeat(), "all": cats.repeat()}, [(0, {"some": 1, "all": 1})]
    )
    with pytest.raises(ingot.WorkerError, match="different fields"):
        next(iter(ingot.Loader(mixed, 4)))


def test_the_older_of_two_loops_is_refused(cats):
    loader = ingot.Loader(cats, 10)
    outer = iter(loader)
    next(outer)
    for _ in loader:
        break
    with pytest.raises(RuntimeError, match="another loop over this loader has begun"):
        next(outer)
    assert loader.step == 2


def test_two_threads_do_not_take_from_one_loader(cats):
    begun, go_on = threading.Event(), threading.Event()

    def wait(row):
        begun.set()
        go_on.wait(60)
        return row["label"]

    loader = ingot.Loader(cats.map(wait), 10, workers=1)
    loop = iter(loader)
    thread = threading.Thread(target=next, args=(loop,))
    thread.start()
    begun.wait(60)
    with pytest.raises(RuntimeError, match="another thread takes a batch from this loader"):
        next(loop)
    go_on.set()
    thread.join()
    assert loader.step == 1


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


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([1, 2], np.array([1, 2])),
        ([1, 2.5], np.array([1, 2.5])),
        ([True, False], np.array([True, False])),
        ([1, None], [1, None]),
        ([2**70, 1], [2**70, 1]),
        ([2**63, -1], [2**63, -1]),
        (["a", "b"], ["a", "b"]),
        ([b"a", 1], [b"a", 1]),
        ([np.float32(1), np.float32(2)], np.array([1, 2], np.float32)),
        ([np.zeros(2), np.ones(2)], np.array([[0, 0], [1, 1.0]])),
        ([np.zeros(2), np.ones(3)], [np.zeros(2), np.ones(3)]),
        ([{"a": 1}, {"a": 2}], {"a": np.array([1, 2])}),
        ([(1, "x"), (2, "y")], (np.array([1, 2]), ["x", "y"])),
        ([Pair(1, "x"), Pair(2, "y")], Pair(np.array([1, 2]), ["x", "y"])),
        ([(1,), (2, 3)], [(1,), (2, 3)]),
        ([[1], [2]], [[1], [2]]),
        ([torch.ones(2), torch.zeros(2)], torch.tensor([[1.0, 1], [0, 0]])),
        ([torch.ones(2), torch.zeros(3)], [torch.ones(2), torch.zeros(3)]),
    ],
)
def test_samples_are_collated_by_their_type(samples, expected):
    found = ingot.Loader(samples, 2).batch(0)
    assert type(found) is type(expected)
    assert str(found) == str(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype


def test_a_collate_function_gets_the_samples(cats):
    loader = ingot.Loader(cats.map(label_of), 4, collate=sum)
    assert [loader.batch(0), loader.batch(1)] == [6, 22]


def test_tensors_share_their_memory_with_arrays(cats):
    batch = ingot.Loader(cats, 4, to="torch").batch(1)
    assert batch["image"].dtype == torch.uint8
    assert batch["label"].tolist() == [4, 5, 6, 7]
    assert batch["deep"]["x"].dtype == torch.float64
    assert batch["words"][1] == ["5/0", "5/1", "5/2", "5/3", "5/4"][:0]
    batch["image"][0] = 0  # PyTorch writes where it wants


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to pin memory for")
def test_without_a_gpu_no_memory_is_pinned(cats):
    batch = ingot.Loader(cats, 4, to="torch", pin_memory=True).batch(0)
    assert not batch["image"].is_pinned()


def test_memory_that_must_not_change_is_copied_for_tensors():
    fixed = np.arange(3)
    fixed.flags.writeable = False
    loader = ingot.Loader([0, 1], 2, collate=lambda _: [fixed, np.array(["a"])], to="torch")
    numbers, texts = loader.batch(0)
    numbers[0] = 9
    assert fixed.tolist() == [0, 1, 2]
    assert isinstance(texts, np.ndarray)


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
    assert global_batches(order, 8, 5, worlds=worlds, **options)[0] == expected


def test_a_state_of_one_number_of_ranks_resumes_on_another(cats):
    order = cats.shuffle(5).map(noisy).repeat()
    straight, _ = global_batches(order, 10, 9, worlds=1)
    state, found = None, []
    for worlds, count in ((2, 3), (5, 1), (1, 2), (3, 3)):
        batches, state = global_batches(order, 10, count, worlds=worlds, first=state)
        found += batches
    assert found == straight


def test_a_loop_is_an_epoch_and_the_next_one_is_shuffled_anew(cats):
    loader = ingot.Loader(cats.shuffle(1).map(label_of), 20)
    first, second = (np.concatenate(list(loader)).tolist() for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(ROWS))
    assert first != second
    assert first == [row["label"] for row in cats.shuffle(1)]
    assert (loader.step, loader.epoch) == (6, 2)


def test_a_loop_that_was_left_goes_on_where_it_was(logs):
    loader = ingot.Loader(logs, 20)
    for batch in loader:
        assert batch[0] == b"0"
        break
    assert [batch[0] for batch in loader] == [b"20", b"40"]
    assert [batch[0] for batch in loader] == [b"0", b"20", b"40"]


def test_the_last_batch_is_left_out_or_shorter():
    assert [len(one) for one in ingot.Loader(range(10), 4)] == [4, 4]
    loader = ingot.Loader(range(10), 4, drop_last=False)
    assert [len(one) for one in loader] == [4, 4, 2]
    assert len(loader) == 3
    assert next(iter(loader)).tolist() == [0, 1, 2, 3]
    assert "2 samples of an epoch left out" in repr(ingot.Loader(range(10), 4))


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


def test_a_state_resumes_with_another_batch_size_where_a_batch_begins():
    loader = ingot.Loader(range(100), 10)
    loader.seek(4)
    twice = ingot.Loader(range(100), 20)
    twice.load_state_dict(loader.state_dict())
    assert twice.batch(twice.step).tolist() == list(range(40, 60))
    loader.seek(3)
    with pytest.raises(ValueError, match=r"no batch of 20 begins at position 30.*skip\(30\)"):
        twice.load_state_dict(loader.state_dict())


def test_any_step_is_reached_at_once(cats):
    loader = ingot.Loader(cats.shuffle(3).repeat(), 32)
    loader.seek(10**9)
    batch = next(iter(loader))
    assert batch["label"].tolist() == loader.indices(10**9).row.tolist()
    assert loader.step == 10**9 + 1
    assert loader.indices(10**9).epoch[0] == 32 * 10**9 // ROWS


def test_batch_and_indices_leave_the_loader_where_it_is(cats):
    loader = ingot.Loader(cats.shuffle(3), 6, shard=(1, 2))
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
    with pytest.raises(ValueError, match="leaves out steps of 10 samples"):
        ingot.Loader(range(100), 5).load_state_dict(state)


def test_an_exception_arrives_at_its_step_and_names_the_row(cats):
    loader = ingot.Loader(cats.map(refuse_sevens), 5, workers=3, prefetch=8)
    batches = iter(loader)
    assert next(batches).tolist() == [0, 1, 2, 3, 4]
    for _ in range(2):  # The step is tried again.
        with pytest.raises(
            ingot.WorkerError, match=r"step 1, position 7 \(row 7 of cats\): KeyError: 'no 7'"
        ) as caught:
            next(batches)
        assert caught.value.step == loader.step == 1
        assert isinstance(caught.value.__cause__, KeyError)
    loader.skip(1, 2)
    assert next(batches).tolist() == [10, 11, 12, 13, 14]


def test_an_exception_of_a_collate_function_names_the_step():
    def fail(samples):
        raise OSError(len(samples))

    with pytest.raises(ingot.WorkerError, match="step 0: OSError: 3") as caught:
        ingot.Loader(range(9), 3, collate=fail, on_error="substitute").batch(0)
    assert isinstance(caught.value.__cause__, OSError)


def test_a_sample_that_fails_is_replaced_the_same_way_on_any_topology(cats):
    order = cats.shuffle(1).map(refuse_sevens)
    expected = None
    for worlds in (1, 2, 5):
        found, _ = global_batches(order, 10, 6, worlds=worlds, on_error="substitute")
        expected = expected or found
        assert found == expected
    flat = [label for batch in expected for label in batch]
    assert len(flat) == ROWS
    assert not any(label % 10 == 7 for label in flat)
    assert {label for label in range(ROWS) if label % 10 != 7} <= set(flat)


def test_the_loader_lists_what_it_has_replaced(cats):
    loader = ingot.Loader(cats.map(refuse_sevens), 20, workers=2, on_error="substitute")
    batches = iter(loader)
    assert loader.errors == []
    first = next(batches)
    assert [one.position for one in loader.errors] == [7, 17]
    one = loader.errors[0]
    assert isinstance(one, Replacement)
    assert (one.step, one.rows, one.reason) == (0, "row 7 of cats", "KeyError: 'no 7'")
    assert first[7] == one.substitute
    list(batches)
    assert [one.position for one in loader.errors] == [7, 17, 27, 37, 47, 57]


def test_a_damaged_record_is_replaced_in_columns_too(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "array(uint8,999)"}) as writer:
        for k in range(20):
            writer.append({"a": np.random.default_rng(k).integers(0, 256, 999, np.uint8)})
    content = bytearray((tmp_path / "x.ingot").read_bytes())
    place = content.index(np.random.default_rng(7).integers(0, 256, 999, np.uint8).tobytes())
    content[place + 5] ^= 1
    (tmp_path / "x.ingot").write_bytes(content)
    ds = ingot.open(tmp_path / "x.ingot")
    with pytest.raises(ingot.WorkerError, match="step 1, position 7 ") as caught:
        list(ingot.Loader(ds, 5))
    assert isinstance(caught.value.__cause__, ingot.CorruptFileError)
    assert caught.value.path == str(tmp_path / "x.ingot")
    for order in (ds, ds.repeat()):
        loader = ingot.Loader(order, 5, on_error="substitute")
        batch = loader.batch(1)["a"]
        assert batch.shape == (5, 999)
        loader.seek(1)
        assert (next(iter(loader))["a"] == batch).all()
        (replaced,) = loader.errors
        assert replaced.position == 7
        assert replaced.reason.startswith("CorruptFileError: ")
        assert (batch[2] == ds[replaced.substitute % 20]["a"]).all()


def test_a_function_that_always_fails_is_an_error_even_with_substitutes(cats):
    def fail(sample):
        raise ValueError(sample)

    with pytest.raises(ingot.WorkerError, match="step 0, position 0 and 16 substitutes"):
        next(iter(ingot.Loader(cats.map(fail), 5, on_error="substitute")))


def test_an_error_that_is_no_samples_fault_is_not_replaced(folder):
    ds = ingot.open(folder / "cats")
    loader = ingot.Loader(ds, 5, on_error="substitute")
    ds.close()
    with pytest.raises(ingot.WorkerError, match="ClosedError"):
        next(iter(loader))


def test_no_more_batches_are_held_than_are_read_ahead(cats):
    held, most = set(), 0
    lock = threading.Lock()

    class Held:
        def __init__(self, samples):
            nonlocal most
            self.samples = samples
            with lock:
                held.add(id(self))
                most = max(most, len(held))

        def __del__(self):
            held.discard(id(self))

    loader = ingot.Loader(cats.repeat(), 4, workers=3, prefetch=5, collate=Held)
    batches = iter(loader)
    for _ in range(50):
        batch = next(batches)
        del batch
    assert most <= 6
    loader.close()
    assert not held


def test_nothing_is_read_beyond_the_epoch():
    asked = []
    loader = ingot.Loader(ingot.Order.of(range(12)).map(asked.append), 4, prefetch=50)
    list(loader)
    assert len(asked) == 12
    list(loader)
    assert len(asked) == 24


def test_close_ends_the_threads_and_what_was_begun(cats):
    before = set(threads_of_loaders())
    loader = ingot.Loader(cats.repeat(), 4, workers=3)
    batches = iter(loader)
    next(batches)
    assert len(set(threads_of_loaders()) - before) == 3
    loader.close()
    loader.close()
    assert set(threads_of_loaders()) <= before
    with pytest.raises(ingot.ClosedError, match="the loader is closed"):
        next(batches)
    with pytest.raises(ingot.ClosedError, match="the loader is closed"):
        loader.batch(0)
    assert loader.state_dict()["step"] == 1


def test_a_loader_that_nobody_holds_has_no_threads(cats):
    before = set(threads_of_loaders())
    batches = iter(ingot.Loader(cats.repeat(), 4, workers=3))
    next(batches)
    threads = set(threads_of_loaders()) - before
    assert len(threads) == 3
    del batches
    gc.collect()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def run(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


BUSY = """
import signal, sys, ingot
loader = ingot.Loader(ingot.open(sys.argv[1]).repeat().map(dict), 8, workers=4, prefetch=32)
batches = iter(loader)
next(batches)
"""


def test_the_interpreter_ends_while_threads_work(folder):
    for end in ("", "raise SystemExit(0)", "del loader, batches"):
        outcome = run(BUSY + end, folder / "cats")
        assert (outcome.returncode, outcome.stderr) == (0, "")


def test_an_interrupt_ends_a_wait_and_the_program(folder):
    code = """
import threading
never = threading.Event()

def interrupt(samples):
    if not never.is_set():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    return never.wait()

loader = ingot.Loader(range(8), 8, workers=1, collate=interrupt)
try:
    next(iter(loader))
except KeyboardInterrupt:
    assert loader.step == 0
    never.set()
    assert next(iter(loader)) is True
    print("went on")
"""
    outcome = run(BUSY + code, folder / "cats")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "went on\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(cats):
    loader = ingot.Loader(cats.shuffle(1).map(label_of).repeat(), 8, workers=2)
    next(iter(loader))
    ends, starts = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        starts.send([next(iter(loader)).tolist() for _ in range(3)])
        os._exit(0)
    found = [next(iter(loader)).tolist() for _ in range(3)]
    assert ends.recv() == found
    assert os.waitpid(child, 0)[1] == 0


def test_where_there_are_no_threads_the_caller_works(monkeypatch):
    def refuse(_):
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert [one.tolist() for one in ingot.Loader(range(6), 3, workers=4)] == [[0, 1, 2], [3, 4, 5]]


def test_verify_resume_finds_what_depends_on_more_than_its_sample(cats):
    good = ingot.Loader(cats.shuffle(1).map(noisy), 8)
    good.seek(3)
    assert good.verify_resume(steps=9, resumes=3) >= 9
    assert good.step == 3
    random = np.random.default_rng()
    bad = ingot.Loader(cats.map(lambda row: {**row, "x": random.normal()}), 8)
    with pytest.raises(ValueError, match=r"step 0 differs when it is read again, in batch\['x'\]"):
        bad.verify_resume()
    for to in ("numpy", "torch"):
        assert ingot.Loader(cats, 8, to=to, drop_last=False).verify_resume() >= 16


def test_stats_say_who_is_the_bottleneck(cats):
    loader = ingot.Loader(cats.map(dict), 10)
    assert str(loader.stats()).startswith("no batch was handed out yet")
    list(loader)
    stats = loader.stats()
    assert (stats.batches, stats.samples) == (6, 60)
    assert min(stats.read_s, stats.transform_s, stats.collate_s, stats.wait_s) > 0
    assert stats.elapsed_s >= stats.wait_s
    slow = LoaderStats(1, 1, elapsed_s=10, wait_s=5, read_s=1, transform_s=8, collate_s=1)
    assert slow.bottleneck == (
        "the loader is the bottleneck: the training loop waited for data 50% of the time, "
        "and workers spent 80% of theirs in the functions of map"
    )
    fast = LoaderStats(1, 1, elapsed_s=10, wait_s=0.1)
    assert fast.bottleneck == (
        "the training loop is the bottleneck: it waited for data 1% of the time"
    )


def test_ranks_come_from_the_environment(monkeypatch):
    assert (ingot.Loader(range(9), 4).rank, ingot.Loader(range(9), 4).world) == (0, 1)
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ValueError, match="RANK=1, WORLD_SIZE=: expected two integers"):
        ingot.Loader(range(9), 4)
    monkeypatch.setenv("WORLD_SIZE", "3")
    loader = ingot.Loader(range(9), 4)
    assert (loader.rank, loader.world) == (1, 3)
    assert loader.batch(0).tolist() == [1]
    assert ingot.Loader(range(9), 4, shard=None).batch(0).tolist() == [0, 1, 2, 3]
    assert ingot.Loader(range(9), 4, shard=(2, 3)).batch(0).tolist() == [2, 3]


def test_ranks_come_from_torch_distributed(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
    loader = ingot.Loader(range(8), 8)
    assert (loader.rank, loader.world) == (2, 4)


TRAINED = """
import sys, torch.distributed, ingot
rank, store = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{store}", rank=rank, world_size=2
)
loader = ingot.Loader(ingot.open(sys.argv[3]).shuffle(6), 10, to="torch")
for batch in loader:
    parts = [torch.empty(5, dtype=torch.int64) for _ in range(2)]
    torch.distributed.all_gather(parts, batch["label"])
    print(torch.cat(parts).tolist())
torch.distributed.destroy_process_group()
"""


def test_ranks_of_torch_distributed_share_each_batch(folder, tmp_path, cats):
    command = [sys.executable, "-c", TRAINED]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store"), str(folder / "cats")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    found = [one.communicate(timeout=120)[0] for one in ranks]
    assert [one.returncode for one in ranks] == [0, 0]
    expected = [batch["label"].tolist() for batch in ingot.Loader(cats.shuffle(6), 10)]
    assert [list(map(json.loads, one.splitlines())) for one in found] == [expected] * 2


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("cats",), {}, TypeError, r"got a path: ingot\.open\('cats'\) opens it"),
        ((5,), {}, TypeError, "an order is made of a sequence"),
        ((range(9), 0), {}, ValueError, "batch_size is at least 1"),
        ((range(0), 1), {}, ValueError, "the order has no samples"),
        ((range(9), 10), {}, ValueError, "9 samples has no whole batch of 10: pass drop_last=Fal"),
        ((range(9), 2), {"shard": (0, 3)}, ValueError, "a batch of 2 has no sample for each of 3"),
        (
            (range(9), 4),
            {"shard": (0, 2), "drop_last": False},
            ValueError,
            "last batch of an epoch has 1 samples, not one for each of 2 ranks: pass drop_last",
        ),
        ((range(9),), {"shard": (3, 3)}, ValueError, "rank 3 of 3"),
        ((range(9),), {"shard": 3}, TypeError, r'shard is "auto", \(rank, world\) or None, not 3'),
        ((range(9),), {"to": "jax"}, ValueError, 'to is "numpy" or "torch", not \'jax\''),
        ((range(9),), {"on_error": "skip"}, ValueError, 'on_error is "raise" or "substitute"'),
        ((range(9),), {"pin_memory": True}, ValueError, 'pin_memory requires to="torch"'),
        ((range(9),), {"workers": -1}, ValueError, "workers is at least 0"),
        ((range(9),), {"prefetch": 0}, ValueError, "prefetch is at least 1"),
        (
            (ingot.Order.of(range(99)).shard(0, 2),),
            {"shard": (0, 2)},
            ValueError,
            r"the order has shard\(rank=0, world=2\), and the loader gives each of 2 ranks",
        ),
        (
            (ingot.mix({"a": ingot.Order.of(range(99)).shard(0, 2)}, {"a": 1}),),
            {"shard": (0, 2)},
            ValueError,
            "leave the step out, or pass shard=None",
        ),
    ],
)
def test_natural_mistakes_get_exact_messages(arguments, options, error, message):
    batch_size = arguments[1] if len(arguments) > 1 else 4
    with pytest.raises(error, match=message):
        ingot.Loader(arguments[0], batch_size, **options)


def test_a_state_of_another_order_is_refused_with_the_difference(cats):
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
    with pytest.raises(ValueError, match="version 2, this Ingot reads up to 1"):
        other.load_state_dict({**state, "version": 2})


def test_steps_that_cannot_be_are_refused():
    loader = ingot.Loader(ingot.Order.of(range(9)).repeat(), 4)
    for step in (-1, 2**62):
        with pytest.raises(ValueError, match="a step is at least 0"):
            loader.seek(step)
    with pytest.raises(ValueError, match="expected first <= stop, got 5 and 3"):
        loader.skip(5, 3)
    with pytest.raises(TypeError, match="an infinite order has no number of steps"):
        len(loader)


def test_a_loader_is_true_and_not_pickled():
    loader = ingot.Loader(ingot.Order.of(range(9)).repeat(), 4)
    assert loader
    with pytest.raises(TypeError, match="pickle its order and its state_dict"):
        pickle.dumps(loader)


def test_a_loader_describes_itself(logs):
    text = repr(ingot.Loader(logs.shuffle(0).repeat(), 16, shard=(1, 4)))
    assert text == (
        "<ingot.Loader at step 0, steps without end of 16 samples, rank 1 of 4, of "
        "Reader('logs.ingot', 60 rows) -> shuffle(seed=0) -> repeat()>"
    )


def test_tensors_without_pytorch_say_how_to_get_it():
    code = """
import sys
sys.modules["torch"] = None
import ingot
try:
    ingot.Loader(range(9), 3, to="torch")
except ModuleNotFoundError as error:
    print(error)
"""
    assert run(code).stdout == 'to="torch" requires PyTorch: pip install torch\n'


# Random compositions, topologies and stops.


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
    straight = ingot.Loader(order, batch_size, workers=0, collate=list)
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
        options |= {"worlds": worlds, "first": state, "collate": list}
        batches, state = global_batches(order, batch_size, count, **options)
        found += batches
    assert found == expected
    assert state["step"] == first + sum(counts)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_pipeline_resumes_exactly_on_any_topology_after_any_stop(data):
    check_resumes(data)


@pytest.mark.soak
@settings(max_examples=2000, deadline=None)
@given(data=st.data())
def test_many_pipelines_resume_exactly_on_any_topology_after_any_stop(data):
    check_resumes(data)


KILLED = """
import json, os, sys, ingot
folder, world, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
order = ingot.open(folder).shuffle(4).repeat()
loaders = [ingot.Loader(order, 6, shard=(rank, world)) for rank in range(world)]
if os.path.exists(path):
    with open(path) as file:
        state = json.load(file)["state"]
    for loader in loaders:
        loader.load_state_dict(state)
for step in range(int(sys.argv[4])):
    batch = [label for one in loaders for label in next(iter(one))["label"].tolist()]
    with open(path + ".new", "w") as file:
        json.dump({"state": loaders[0].state_dict(), "batch": batch}, file)
    os.replace(path + ".new", path)
    print(json.dumps(batch), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_a_killed_job_resumes_on_another_number_of_ranks(folder, tmp_path, cats):
    seen = []
    for world, count in ((1, 3), (2, 2), (3, 4)):
        outcome = run(KILLED, folder / "cats", world, tmp_path / "state.json", count)
        assert outcome.returncode == -signal.SIGKILL, outcome.stderr
        seen += map(json.loads, outcome.stdout.splitlines())
    loader = ingot.Loader(cats.shuffle(4).repeat(), 6)
    assert seen == [loader.batch(step)["label"].tolist() for step in range(9)]


def test_messages_have_no_addresses(cats):
    texts = [repr(ingot.Loader(cats.map(label_of), 4)), str(LoaderStats())]
    assert not any(re.search("0x[0-9a-f]{6}", text) for text in texts)
