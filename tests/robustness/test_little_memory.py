"""Work under a limit of the address space, as `ulimit -v` sets it.

It succeeds or raises, and does not abort the process. Under a cgroup's limit the kernel kills
instead, and there is nothing to test.
"""

import pytest

WORKS = [
    *("write-records", "write-rows", "lengths-records", "verify-records", "verify-rows"),
    *("batch-records", "buffer-records", "iterate-records", "iterate-rows"),
    *("batch-rows", "column-rows", "texts-rows", "numbers-many", "present-many"),
]


@pytest.mark.parametrize("megabytes", [0.2, 4, 16])
@pytest.mark.parametrize("work", WORKS)
def test_little_memory_is_an_exception_at_worst(tmp_path, run_fault, work, megabytes):
    outcome = run_fault("little_memory.py", work, tmp_path / "x.ingot", megabytes)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout in ("done", "MemoryError", "StorageError")


@pytest.mark.parametrize("megabytes", [16, 64, 256])
@pytest.mark.parametrize("work", ["write-large", "keep-records", "keep-rows"])
def test_work_that_exceeds_the_memory_raises_memory_error(tmp_path, run_fault, work, megabytes):
    outcome = run_fault("little_memory.py", work, tmp_path / "x.ingot", megabytes)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "MemoryError"
