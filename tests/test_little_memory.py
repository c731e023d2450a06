"""Work that finds little memory: it succeeds, or fails by an exception, and never ends Python."""

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
