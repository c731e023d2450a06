"""How many threads work on one batch."""

import sys

import pytest

import ingot

RECORDS = [b"%08d" % k + bytes(4088) for k in range(1000)]

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@pytest.fixture
def path(make):
    return make(RECORDS, compression=None)


@pytest.mark.parametrize("n", [0, -1, 1 << 63])
def test_invalid_numbers_of_threads_are_rejected(n):
    with pytest.raises(ValueError, match=f"expected a positive number of threads, got {n}"):
        ingot.set_threads(n)


@pytest.mark.parametrize("n", ["4", 4.0, None, True])
def test_only_a_number_is_a_number_of_threads(n):
    with pytest.raises(TypeError, match="expected a number of threads"):
        ingot.set_threads(n)


@on_linux
@pytest.mark.parametrize("value", ["0", "-2", "all", "1.5", ""])
def test_a_variable_that_is_not_a_positive_number_is_rejected_by_name(path, run_fault, value):
    outcome = run_fault("digest.py", path, env={"INGOT_THREADS": value})
    assert outcome.returncode == 1
    assert f"ValueError: INGOT_THREADS={value}: expected a positive number" in outcome.stderr


@on_linux
def test_processes_of_one_thread_have_no_helpers(path, run_fault):
    outcome = run_fault("read_at_once.py", path, 8, env={"INGOT_THREADS": "1"})
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == ["0"] * 8


@on_linux
def test_a_process_has_at_most_as_many_threads_as_the_variable_says(path, run_fault):
    outcome = run_fault("read_at_once.py", path, 1, env={"INGOT_THREADS": "3"})
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split()[0] in {"1", "2"}


@on_linux
def test_a_setting_wins_over_the_variable_and_holds_from_the_next_batch_on(path, run_fault):
    outcome = run_fault("read_at_once.py", path, 1, 1, 1, 3, 1, env={"INGOT_THREADS": "64"})
    assert outcome.returncode == 0, outcome.stderr
    alone, still_alone, three, one = map(int, outcome.stdout.split())
    assert (alone, still_alone) == (0, 0)
    assert 1 <= three <= 2
    assert one == three, "helpers that are too many sleep"


def test_many_threads_read_one_reader_and_fork(path, run_fault):
    outcome = run_fault("fork_among_threads.py", path, 10)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "0 failed"


KINDS = [
    "arrow",
    "columns",
    "groups",
    "hdf5",
    "images",
    "jsonlines",
    "loader",
    "parquet",
    "passes",
    "pictures",
    "records",
    "rows",
    "streams",
    "tar",
    "tfrecord",
    "writer",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_that_is_forked_among_reads_can_read(tmp_path, run_fault, kind):
    outcome = run_fault("fork_among_reads.py", kind, tmp_path, 20)
    assert outcome.stdout == "[]", outcome.stderr


def test_a_child_that_is_forked_among_batches_can_read_batches(tmp_path, run_fault):
    outcome = run_fault("fork_among_reads.py", "batches", tmp_path, 150)
    assert outcome.stdout == "[]", outcome.stderr
