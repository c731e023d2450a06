"""Writers of H5Record's API that fail, are killed, or run out of room: nothing passes for whole."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

import ingot
from ingot.compat.h5record import H5Dataset, Image, Integer, String
from tests.support import FAULTS

COLUMNS = [Integer("i"), String("t"), Image(2, 2, 1)]
PLACES = [1, 299, 300, 301, 1000]


@pytest.fixture(params=["x.h5", "x.ingot"])
def path(request, tmp_path):
    return tmp_path / request.param


def row(k):
    return {"i": k, "t": f"text {k}", "image": [[[k % 256] * 2] * 2]}


def rows(count, start=0):
    return [row(k) for k in range(start, start + count)]


def numbers(dataset):
    """Return the numbers of rows, all of whose values must belong to them."""
    found = list(dataset)
    assert all(row["t"] == f"text {row['i']}" for row in found)
    assert all((row["image"] == row["i"] % 256).all() for row in found)
    return [int(row["i"]) for row in found]


def left(path):
    return sorted(one.name for one in path.parent.iterdir())


def failing(place, how, start=0):
    """Yield rows, of which one is bad, or none because of an exception."""
    for k in range(1500):
        if k != place:
            yield row(start + k)
        elif isinstance(how, dict):
            yield row(start + k) | how
        else:
            raise how("mine")


FAILURES = [
    ({"i": 2.9}, ValueError, "row {place}: 'i': 2.9 cannot be stored as int64"),
    ({"t": None}, TypeError, "row {place}: 't': expected a str, got NoneType"),
    ({"image": [[[300] * 2] * 2]}, ValueError, "row {place}: 'image': 300 cannot be stored"),
    ({"image": [[[3]]]}, ValueError, "row {place}: 'image': expected shape"),
    ({"x": 1}, ValueError, "row {place}: 'x' is unknown"),
    (ZeroDivisionError, ZeroDivisionError, "mine"),
    (KeyboardInterrupt, KeyboardInterrupt, "mine"),
    (MemoryError, MemoryError, "mine"),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("how", "error", "said"), FAILURES, ids=lambda one: repr(one)[:40])
def test_rows_in_front_of_a_failure_are_kept_and_gone_on_with(path, how, error, said, place):
    with pytest.raises(error, match=said.format(place=place)) as caught:
        H5Dataset(COLUMNS, path, failing(place, how))
    (note,) = caught.value.__notes__
    assert ("1 row" if place == 1 else f"{place:,} rows") in note
    assert f"with the rows from {place} on and append_mode=True, or start over" in note
    if path.suffix == ".h5":
        assert left(path) == ["x.h5.partial"]
        with pytest.raises(FileNotFoundError, match=r"x\.h5\.partial holds .*append_mode=True"):
            H5Dataset(COLUMNS, path)
        with pytest.raises(ingot.UnfinishedFileError):
            ingot.open(f"{path}.partial")
    else:
        assert left(path) == ["x.ingot"]
        with pytest.raises(ingot.UnfinishedFileError) as plain:
            H5Dataset(COLUMNS, path)
        assert "append_mode=True " in "".join([str(plain.value), *plain.value.__notes__])
    dataset = H5Dataset(COLUMNS, path, rows(1500 - place, place), append_mode=True)
    assert numbers(dataset) == list(range(1500))
    assert left(path) == [path.name]


@pytest.mark.parametrize("place", [1, 300, 1000])
def test_without_append_mode_the_next_run_begins_anew(path, place):
    with pytest.raises(ZeroDivisionError):
        H5Dataset(COLUMNS, path, failing(place, ZeroDivisionError))
    assert numbers(H5Dataset(COLUMNS, path, rows(7))) == list(range(7))
    assert left(path) == [path.name]


@pytest.mark.parametrize("how", [{"i": 2.9}, KeyboardInterrupt], ids=repr)
def test_a_failure_at_the_first_row_leaves_nothing(path, how):
    with pytest.raises((ValueError, KeyboardInterrupt)) as caught:
        H5Dataset(COLUMNS, path, failing(0, how))
    assert caught.value.__notes__ == [f"{path} was not made"]
    assert left(path) == []


def test_failures_can_follow_each_other(path):
    done = 0
    for place in (1, 299, 2, 300, 301):
        with pytest.raises(ZeroDivisionError) as caught:
            H5Dataset(COLUMNS, path, failing(place, ZeroDivisionError, done), append_mode=True)
        done += place
        assert ("1 row" if done == 1 else f"{done} rows") in caught.value.__notes__[0]
    assert numbers(H5Dataset(COLUMNS, path, rows(10, done), append_mode=True)) == list(range(913))


@pytest.mark.parametrize("place", [0, *PLACES])
@pytest.mark.parametrize(("how", "error", "said"), FAILURES, ids=lambda one: repr(one)[:40])
def test_a_failed_append_leaves_the_file_byte_for_byte(path, how, error, said, place):
    H5Dataset(COLUMNS, path, rows(20))
    before = path.read_bytes()
    with pytest.raises(error, match=said.format(place=place + 20)) as caught:
        H5Dataset(COLUMNS, path, failing(place, how, start=20), append_mode=True)
    assert caught.value.__notes__ == [f"{path} has its 20 rows as before, and none of the new ones"]
    assert path.read_bytes() == before
    assert left(path) == [path.name]
    assert numbers(H5Dataset(COLUMNS, path, rows(5, 20), append_mode=True)) == list(range(25))


def test_a_failed_append_without_a_new_row_leaves_the_file_as_it_was(path):
    H5Dataset(COLUMNS, path, rows(20))
    for columns, how in ((COLUMNS, {"i": None}), ([Integer("other")], {})):
        with pytest.raises((TypeError, ValueError)):
            H5Dataset(columns, path, failing(0, how, start=20), append_mode=True)
        assert numbers(H5Dataset(COLUMNS, path)) == list(range(20))


def test_a_file_that_is_full_is_not_appended_to(tmp_path):
    path = tmp_path / "x.h5"
    H5Dataset(COLUMNS, path, rows(5), data_length=7)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="at most 7 rows") as caught:
        H5Dataset(COLUMNS, path, rows(3, 5), append_mode=True)
    assert "5 rows as before" in caught.value.__notes__[0]
    assert path.read_bytes() == before
    assert left(path) == ["x.h5"]
    assert numbers(H5Dataset(COLUMNS, path, rows(2, 5), append_mode=True)) == list(range(7))


SOAK = pytest.mark.soak


@pytest.mark.parametrize(
    ("scenario", "how"),
    [
        ("append", "kill"),
        *(pytest.param("append", how, marks=SOAK) for how in ("fail", "meet")),
        *(pytest.param("create", how, marks=SOAK) for how in ("kill", "fail", "meet")),
    ],
)
def test_a_fault_at_any_call_leaves_the_old_file_or_the_new(path, run_fault, strace, scenario, how):
    suffix = path.suffix[1:]
    arguments = [strace, path.parent, scenario, suffix, how]
    outcome = run_fault("h5record_each_call.py", *arguments, timeout=200)
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    assert int(outcome.stdout) >= {"h5": 20, "ingot": 8}[suffix]


@pytest.mark.parametrize(
    "scenario", ["create", *(pytest.param(one, marks=SOAK) for one in ("append", "resume"))]
)
def test_an_interrupt_at_any_line_is_gone_on_after(path, run_fault, scenario):
    arguments = [path.parent, scenario, path.suffix[1:]]
    outcome = run_fault("h5record_interrupt_each_line.py", *arguments, timeout=200)
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    assert int(outcome.stdout) > 100


def test_after_a_kill_appending_makes_the_file_or_says_what_to_remove(path):
    child = subprocess.Popen(
        [sys.executable, str(FAULTS / "h5record_rows_until_killed.py"), str(path)],
        stdout=subprocess.PIPE,
    )
    for _ in range(700):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    with pytest.raises((FileNotFoundError, ingot.UnfinishedFileError)):
        H5Dataset([Integer("i")], path)
    try:
        dataset = H5Dataset([Integer("i")], path, [{"i": -1}], append_mode=True)
    except ingot.UnfinishedFileError as error:
        assert "x.h5.partial" in str(error)  # noqa: PT017
        assert "h5clear --status" not in str(error)  # noqa: PT017 -- its rows are lost
        return
    found = [int(row["i"]) for row in dataset]
    assert found == [*range(len(found) - 1), -1]


def test_a_file_that_a_killed_writer_of_the_real_package_has_left_says_so(tmp_path):
    path = tmp_path / "x.h5"
    code = (
        "import os, sys, h5py\n"
        "file = h5py.File(sys.argv[1], 'w', libver='latest')\n"
        "file.create_dataset('i', data=[1, 2], maxshape=(None,))\n"
        "file.swmr_mode = True\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    before = path.read_bytes()
    for options in ({}, {"data_iter": [{"i": 3}], "append_mode": True}):
        with pytest.raises(ingot.UnfinishedFileError, match=f"h5clear --status {path}"):
            H5Dataset([Integer("i")], path, **options)
    assert path.read_bytes() == before
    assert left(path) == ["x.h5"]


@pytest.mark.parametrize("limit", ["file", "disk"])
def test_a_full_disk_is_reported_and_leaves_no_file_that_seems_complete(path, run_fault, limit):
    under = []
    if limit == "disk":
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            pytest.skip("mounting a small file system needs root and unshare")
        script = 'mount -t tmpfs -o size=2m tmpfs "$0" || exit 77\n'
        script += 'head -c 1000000 /dev/zero > "$0/x.ballast"\nexec "$@"'
        under = ["unshare", "--mount", "sh", "-c", script, str(path.parent)]
    outcome = run_fault("h5record_fill_disk.py", path, limit, under=under, timeout=120)
    if outcome.returncode == 77 or "unshare" in outcome.stderr:
        pytest.skip("this system does not let root mount")
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    assert outcome.stdout == "ok"
