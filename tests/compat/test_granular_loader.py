import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from ingot.compat import granular
from ingot.compat.granular import sources

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
def test_a_state_is_gone_on_from(is_started):
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


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_worker_that_dies_is_reported(error, workers):
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
def test_datapoints_that_do_not_fit_the_first_are_refused(other):
    source = [{"a": np.zeros(2)}, other]
    with (
        granular.Loader(source, 2, workers=1) as loader,
        pytest.raises(RuntimeError, match="step 1"),
    ):
        next(loader)


def test_a_closed_loader_gives_nothing():
    loader = granular.Loader(square, 2, workers=2)
    next(iter(loader))
    loader.close()
    loader.close()
    with pytest.raises(ValueError, match="closed"):
        next(loader)
    assert not [one for one in threading.enumerate() if one.name.startswith("ingot-loader")]


def test_what_the_loader_does_not_do_is_said():
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
def test_a_loader_goes_on_in_the_child_of_a_fork():
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
    with granular.DatasetWriter(tmp_path / "x", {"foo": "int"}, granular.encoders) as writer:
        for k in range(8):
            writer.append({"foo": k})
    reader = granular.DatasetReader(tmp_path / "x", granular.decoders)
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


def test_sources_of_nothing_are_refused():
    for make in (sources.Epochs, sources.Sample, lambda source: sources.Truncate(source, 3)):
        with pytest.raises(ValueError, match="at least one datapoint"):
            make([])
    with pytest.raises(ValueError, match="weights"):
        sources.Mix([square, square], [1])


def test_the_weights_of_a_mix_stay_the_users_own():
    weights = np.array([1, 3], np.float32)
    sources.Mix([square, square], weights)
    assert weights.tolist() == [1, 3]
