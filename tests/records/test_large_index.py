"""A file whose index is larger than what stays in memory."""

import random

import pytest

import ingot

ROWS = 34_000_000
STEP = 1_000_000


@pytest.mark.soak
def test_records_beyond_33_million_are_read_in_batches(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.Writer(path, compression=None, sync=False) as writer:
        for start in range(0, ROWS, STEP):
            writer.extend(b"%08d" % row for row in range(start, start + STEP))
    reader = ingot.open(path)
    assert len(reader) == ROWS
    rng = random.Random(1)
    for _ in range(200):
        rows = rng.sample(range(ROWS), 64)
        assert reader[rows] == [b"%08d" % row for row in rows]
