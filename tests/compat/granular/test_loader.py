import functools
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from ingot.compat import granular
from ingot.compat.granular import sources
from ingot.compat.granular.loader import CancelledError, Pieces

EXIT = """
import sys
import numpy as np
from ingot.compat import granular
loader = granular.Loader(lambda step: {"a": np.full(3, step)}, batch=4, workers=3)
print(next(iter(loader))["a"].sum())
"""


def square(step):
    return {"step": step, "value": np.full((2, 3), step**2)}


def double(datapoint, seed):
    return {**datapoint, "value": 2 * datapoint["value"], "seed": np.array(seed)}


def steps(loader, batches):
    return [step for _ in range(batches) for step in next(loader)["step"].tolist()]


@pytest.mark.parametrize("workers", [0, 1, 5])
@pytest.mark.parametrize("prefetch", [0, 3])
def test_batches_come_in_the_order_of_steps(workers, prefetch):
    with granular.Loader(square, 4, prefetch=prefetch, workers=workers) as loader:
        assert loader.spec == {"step": (np.dtype(int), ()), "value": (np.dtype(int), (2, 3))}
        assert steps(iter(loader), 10) == list(range(40))
        batch = next(loader)
        assert batch["value"].shape == (4, 2, 3)
        assert batch["value"][:, 0, 0].tolist() == [k**2 for k in range(40, 44)]
        batch["value"][:] = 0


def test_batches_are_the_users_to_keep():
    with granular.Loader(square, 2, workers=2, recycle_after=1) as loader:
        kept = [next(loader)["step"] for _ in range(20)]
    assert np.concatenate(kept).tolist() == list(range(40))


@pytest.mark.parametrize("is_started", [False, True])
def test_a_loader_resumes_from_a_state(is_started):
    first = granular.Loader(square, 3, workers=2)
    steps(first, 4)
    state = first.save()
    assert state == {"step": 12}
    rest = steps(first, 3)
    with granular.Loader(square, 3, workers=4) as second:
        if is_started:
            steps(second, 5)
        second.load(state)
        assert steps(second, 3) == rest
    first.load({"step": 3})
    assert steps(iter(first), 1) == [3, 4, 5]
    first.close()


def test_shards_share_each_step_and_may_be_others_later():
    three = [granular.Loader(square, 2, workers=2, shard_id=k, num_shards=3) for k in range(3)]
    batches = [[next(loader)["step"].tolist() for loader in three] for _ in range(4)]
    assert batches[0] == [[0, 1], [2, 3], [4, 5]]
    assert sorted(step for turn in batches for one in turn for step in one) == list(range(24))
    states = [loader.save() for loader in three]
    assert states == [{"step": 24}] * 3
    two = [granular.Loader(square, 3, workers=2, shard_id=k, num_shards=2) for k in range(2)]
    for loader in two:
        loader.load(states[0])
    assert [next(loader)["step"].tolist() for loader in two] == [[24, 25, 26], [27, 28, 29]]
    for loader in three + two:
        loader.close()


@pytest.mark.parametrize(
    ("workers", "error"),
    [(0, ValueError("bad")), (2, ValueError("bad")), (2, SystemExit(3)), (2, KeyboardInterrupt())],
)
def test_a_worker_that_dies_is_reported(workers, error):
    def source(step):
        if step == 5:
            raise error
        return {"step": step}

    with granular.Loader(source, 2, workers=workers) as loader:
        assert steps(loader, 2) == [0, 1, 2, 3]
        for _ in range(2):
            with pytest.raises(RuntimeError, match="step 5") as caught:
                next(loader)
            assert caught.value.__cause__ is error
        assert loader.save() == {"step": 4}
        loader.load({"step": 6})
        assert steps(loader, 2) == [6, 7, 8, 9]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_without_workers_a_program_can_be_interrupted(error):
    def source(step):
        if step:
            raise error
        return {"step": step}

    with granular.Loader(source, 2, workers=0) as loader, pytest.raises(type(error)):
        next(loader)


@pytest.mark.parametrize(
    "other",
    [
        {"a": np.zeros(3)},
        {"a": np.zeros(1)},
        {"a": np.zeros(2), "b": 1},
        {"a": np.zeros(2, complex)},
        {"a": np.array(["x", "y"])},
        [1, 2],
    ],
)
def test_datapoints_that_do_not_fit_the_first_are_rejected(other):
    source = [{"a": np.zeros(2)}, other]
    with (
        granular.Loader(source, 2, workers=1) as loader,
        pytest.raises(RuntimeError, match="step 1"),
    ):
        next(loader)


def written(folder, count=8):
    with granular.DatasetWriter(folder, {"foo": "int"}, granular.encoders) as writer:
        for k in range(count):
            writer.append({"foo": k})
    return folder


def test_the_rows_of_a_piece_are_read_together_and_shown_to_functions_one_by_one(tmp_path):
    asked = []

    class Counting(granular.DatasetReader):
        def read(self, rows, mask):
            asked.append(rows)
            return super().read(rows, mask)

    def step_of(datapoint, seed):
        return {**datapoint, "step": seed[1]}

    reader = Counting(written(tmp_path / "x"), granular.decoders)
    source = sources.Transform(sources.Truncate(reader, 6), step_of)
    mixed = sources.Interleave([source, sources.Epochs(reader, shuffle=False)])
    with granular.Loader(sources.Transform(mixed, step_of), 8, workers=0) as loader:
        assert loader.spec.keys() == {"foo", "step"}
        asked.clear()
        batch = next(loader)
        assert asked == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert batch["foo"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert batch["step"].tolist() == list(range(8))


@pytest.mark.parametrize("kind", [granular.DatasetReader, granular.ShardedDatasetReader])
def test_a_subclass_with_rows_of_its_own_keeps_them(tmp_path, kind):
    class Doubled(kind):
        def __getitem__(self, index):
            return {"foo": 2 * super().__getitem__(index)["foo"]}

    (tmp_path / "x").mkdir()
    folder = written(tmp_path / "x" / "000000")
    reader = Doubled(
        folder if kind is granular.DatasetReader else tmp_path / "x", granular.decoders
    )
    assert reader.__getitems__([3, 1]) == [{"foo": 6}, {"foo": 2}]
    with granular.Loader(sources.Truncate(reader, 8), 4, workers=0) as loader:
        assert next(loader)["foo"].tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("kind", [granular.DatasetReader, granular.ShardedDatasetReader])
def test_readers_give_many_rows_at_once(tmp_path, kind):
    (tmp_path / "x").mkdir()
    folder = written(tmp_path / "x" / "000000")
    reader = kind(folder if kind is granular.DatasetReader else tmp_path / "x", granular.decoders)
    assert reader.__getitems__([3, 1, 3]) == [reader[3], reader[1], reader[3]]
    assert reader.__getitems__([]) == []


def test_a_row_that_cannot_be_read_is_named_by_its_step(tmp_path):
    reader = granular.DatasetReader(written(tmp_path / "x"), granular.decoders)
    with granular.Loader(reader, 4, workers=2) as loader:
        assert next(loader)["foo"].tolist() == [0, 1, 2, 3]
        assert next(loader)["foo"].tolist() == [4, 5, 6, 7]
        with pytest.raises(RuntimeError, match="step 8") as caught:
            next(loader)
        assert isinstance(caught.value.__cause__, IndexError)


def test_several_workers_share_a_batch_when_there_are_fewer_batches():
    together = threading.Barrier(6, timeout=60)

    def source(step):
        if step % 2 == 0 and step:
            together.wait()
        return {"step": step}

    with granular.Loader(source, 12, prefetch=0, workers=6) as loader:
        loader.load({"step": 1})
        assert steps(loader, 1) == list(range(1, 13))


def test_a_piece_that_is_not_wanted_ends_with_the_datapoint_at_hand():
    made = []

    def source(step):
        made.append(step)
        pieces.is_cancelled = step == 2
        return {"step": step}

    pieces = Pieces(source, {"step": (np.dtype(int), ())}, steps=(0, 100), batch=100, count=1)
    with pytest.raises(CancelledError):
        pieces[0]
    assert made == [0, 1, 2]


def fail_at_five(step):
    if step == 5:
        raise SystemExit(step)
    return {"step": step, "process": os.getpid()}


def die_once(step, marker):
    if step == 5 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"step": step}


def die(step):
    if step >= 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"step": step}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_with_a_context_workers_are_processes(method):
    options = {"workers": 3, "mp": multiprocessing.get_context(method)}
    with granular.Loader(fail_at_five, 2, prefetch=0, **options) as loader:
        batches = [next(loader) for _ in range(2)]
        assert [batch["step"].tolist() for batch in batches] == [[0, 1], [2, 3]]
        assert os.getpid() not in {one for batch in batches for one in batch["process"].tolist()}
        with pytest.raises(RuntimeError, match=r"step 5 could not be made: SystemExit\(5\)"):
            next(loader)
        loader.load({"step": 6})
        batch = next(loader)
        batch["step"][:] += 1
        assert batch["step"].tolist() == [7, 8]
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_is_replaced(tmp_path):
    source = functools.partial(die_once, marker=tmp_path / "died")
    options = {"workers": 2, "mp": multiprocessing.get_context("fork")}
    with granular.Loader(source, 2, **options) as loader:
        assert steps(loader, 4) == list(range(8))


def test_a_process_that_is_always_killed_is_reported():
    options = {"workers": 2, "mp": multiprocessing.get_context("fork")}
    with granular.Loader(die, 2, **options) as loader:
        assert steps(loader, 2) == [0, 1, 2, 3]
        with pytest.raises(RuntimeError, match="the batch at step 4 could not be made") as caught:
            next(loader)
        assert "SIGKILL" in str(caught.value.__cause__)


def test_a_closed_loader_gives_nothing():
    before = set(threading.enumerate())
    loader = granular.Loader(square, 2, workers=2)
    next(iter(loader))
    assert len(set(threading.enumerate()) - before) == 2
    loader.close()
    loader.close()
    with pytest.raises(ValueError, match="closed"):
        next(loader)
    assert set(threading.enumerate()) <= before


def test_unsupported_loader_options_are_named():
    with pytest.raises(TypeError, match=r"sources\.Epochs"):
        granular.Loader(square, 2, shuffle=True)
    with pytest.raises(TypeError, match=r"sources\.Transform"):
        granular.Loader(square, 2, fns=[double])
    with pytest.raises(TypeError, match="callable or indexable"):
        granular.Loader(3, 2)
    for options in ({"batch": 0}, {"batch": 1, "workers": -1}, {"batch": 1, "shard_id": 1}):
        with pytest.raises(ValueError, match="batch must be 1 or more"):
            granular.Loader(square, **options)


def test_a_program_ends_with_its_loader_open():
    done = subprocess.run(
        [sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("18\n", "")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_loader_continues_in_a_forked_child():
    loader = granular.Loader(square, 2, workers=2)
    assert steps(loader, 2) == [0, 1, 2, 3]
    child = os.fork()
    if child == 0:
        os._exit(0 if steps(loader, 2) == [4, 5, 6, 7] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert steps(loader, 2) == [4, 5, 6, 7]
    loader.close()


def test_seeds_count():
    orders = [[sources.Epochs(range(20), seed=seed)(k) for k in range(20)] for seed in (0, 1)]
    assert orders[0] != orders[1]
    for seed, order in enumerate(orders):
        assert order == np.random.default_rng([seed, 0]).permutation(20).tolist()
    other = [sources.Epochs(range(20), seed=1)(20 + k) for k in range(20)]
    assert sorted(other) == list(range(20))
    assert other != orders[1]


def test_epochs_are_read_on_both_sides_of_a_border():
    epochs = sources.Epochs(range(10), seed=3)
    forward = [epochs(step) for step in range(40)]
    assert [epochs(step) for step in reversed(range(40))] == forward[::-1]


def test_sources_are_made_of_readers_and_of_one_another(tmp_path):
    reader = granular.DatasetReader(written(tmp_path / "x"), granular.decoders)
    mixed = sources.Mix([sources.Epochs(reader, seed=2), sources.Sample(reader)], [1, 2], seed=3)
    for source in (
        mixed,
        sources.Truncate(reader, 3),
        sources.Interleave([mixed, reader]),
        sources.Transform(sources.Epochs(square, length=5), double, seed=9),
    ):
        again = pickle.loads(pickle.dumps(source))  # noqa: S301
        for step in range(12):
            if not isinstance(source, sources.Interleave) or step < 8:
                assert repr(again(step)) == repr(source(step))


def test_sources_of_nothing_are_rejected():
    for make in (sources.Epochs, sources.Sample, lambda source: sources.Truncate(source, 3)):
        with pytest.raises(ValueError, match="at least one datapoint"):
            make([])
    with pytest.raises(ValueError, match="weights"):
        sources.Mix([square, square], [1])


def test_the_weights_of_a_mix_stay_the_users_own():
    weights = np.array([1, 3], np.float32)
    sources.Mix([square, square], weights)
    assert weights.tolist() == [1, 3]
