"""Loaders of Granular, 0.24 in this process and 0.21 in another, beside that of Ingot."""

import subprocess
import sys
from pathlib import Path

import granular as real
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingot.compat import granular
from tests.compat.granular import plans
from tests.compat.granular.plans import ROWS, batches, change, datapoint, made

MANY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SEEDS = st.integers(0, 3)
LENGTHS = st.integers(1, 13)

PROGRAM = """
import multiprocessing
import sys
from multiprocessing import shared_memory
from pathlib import Path
import numpy as np
from ingot.compat import granular

named = [shared_memory.SharedMemory(create=True, size=100)] if "named" in sys.argv else []
mp = multiprocessing.get_context("fork") if "processes" in sys.argv else None
for batch in granular.Loader(lambda step: {"a": np.full((64, 64), step)}, 4, workers=2, mp=mp):
    open_files = [str(one.resolve()) for one in Path("/proc/self/fd").iterdir()]
    mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    print(*{one for one in open_files + mapped if one.startswith("/dev/shm/")}, flush=True)
"""


def bounded(part, length):
    """Return plans that use only existing rows of a part."""
    return st.one_of(
        st.tuples(st.just("epochs"), part, length, st.booleans()),
        st.tuples(st.just("sample"), part, length, SEEDS),
        st.tuples(st.just("truncate"), part, LENGTHS, length),
    )


def composed(part):
    """Return plans that are made of others."""
    two = st.tuples(part, part)
    return st.one_of(
        bounded(part, LENGTHS),
        st.tuples(st.just("transform"), part, SEEDS),
        st.tuples(st.just("interleave"), part, part, part),
        st.tuples(st.just("mix"), two, st.tuples(*[st.floats(0.25, 9)] * 2).map(list), SEEDS),
    )


ROWS_OF = st.one_of(st.just(("reader",)), st.tuples(st.just("list"), LENGTHS))
PLANS = st.recursive(
    st.one_of(st.tuples(st.just("call"), SEEDS), bounded(ROWS_OF, st.none())),
    composed,
    max_leaves=5,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a data set in the layout of each version."""
    found = {}
    for layout in ("0.21", "0.22"):
        found[layout] = tmp_path_factory.mktemp("rows") / layout
        spec = {"id": "int", "x": "array"}
        with granular.DatasetWriter(
            found[layout], spec, granular.encoders, layout=layout
        ) as writer:
            for k in range(ROWS):
                writer.append(datapoint(k))
    return found


@pytest.fixture(params=["0.24", "0.21"])
def load(request, old, folders):
    """Return the loaders of Granular and of Ingot over the same data set."""
    folder = folders["0.21" if request.param == "0.21" else "0.22"]

    def theirs(plan, *rest):
        if request.param == "0.21":
            return old("load", plan, folder, *rest)
        return plans.theirs(real, made(real, plan, folder), *rest)

    def ours(plan, *rest):
        return batches(granular, made(granular, plan, folder), *rest)

    return theirs, ours


def check_same(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.keys() == other.keys()
        for key, value in one.items():
            assert value.dtype == other[key].dtype
            assert np.array_equal(value, other[key])


@MANY
@given(
    plan=PLANS,
    batch=st.integers(1, 7),
    shard=st.integers(1, 3).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))),
    prefetch=st.integers(0, 3),
    workers=st.integers(0, 6),
    start=st.integers(0, 40),
)
def test_any_composition_gives_the_batches_of_granular(  # noqa: PLR0917
    load, plan, batch, shard, prefetch, workers, start
):
    theirs, ours = load
    common = {"batch": batch, "shard_id": shard[0], "num_shards": shard[1]}
    options = {**common, "prefetch": prefetch, "workers": workers}
    expected, end = theirs(plan, start, 4, common)
    found, place = ours(plan, start, 4, options)
    check_same(found, expected)
    assert place == end == {"step": start + 4 * batch * shard[1]}

    _, middle = ours(plan, start, 2, options)
    check_same(theirs(plan, middle["step"], 2, common)[0], expected[2:])
    _, middle = theirs(plan, start, 1, common)
    check_same(ours(plan, middle["step"], 3, options)[0], expected[1:])


def test_shuffles_of_many_rows_match_granular():
    rows = range(12_345)
    ours, theirs = granular.sources.Epochs(rows), real.sources.Epochs(rows)
    steps = [0, 1, 12_344, 12_345, 99_999, 1_000_000]
    assert [ours(step) for step in steps] == [theirs(step) for step in steps]


def test_processes_of_granular_and_threads_give_the_same_batches():
    found = {}
    for package in (real, granular):
        source = package.sources.Epochs([datapoint(k) for k in range(10)])
        source = package.sources.Transform(source, change, seed=3)
        loader = package.Loader(source, batch=4, prefetch=2, workers=2)
        stream = iter(loader)
        found[package] = [{key: value.copy() for key, value in next(stream).items()} for _ in "abc"]
        assert loader.save() == {"step": 12}
        loader.close()
    check_same(found[granular], found[real])


@pytest.mark.parametrize(
    ("argument", "num_named", "num_children"), [("", 0, 0), ("processes", 0, 2), ("named", 1, 1)]
)
def test_a_killed_program_leaves_no_shared_memory_and_no_workers_behind(
    argument, num_named, num_children
):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, argument], text=True, **pipes) as process:
        seen = {name for _ in range(5) for name in process.stdout.readline().split()}
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        children = [one for task in tasks for one in (task / "children").read_text().split()]
        process.kill()
        process.stdout.read()  # Until the last process that could write is gone.
    for path in map(Path, seen):
        path.unlink(missing_ok=True)
    assert (len(seen), len(children)) == (num_named, num_children)
