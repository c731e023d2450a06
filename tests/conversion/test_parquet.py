"""Parquet files that Ingot makes, read by pyarrow."""

import numpy as np
import pyarrow.parquet
import pytest

import ingot
from tests.support import containers

ROWS = 300
SPEC = {
    "image": "jpg",
    "number": "int",
    "real": "float",
    "flag": "bool",
    "text": "utf8",
    "data": "bytes",
    "box": "array(float32,2,2)",
    "free": "array",
    "ids": "int[]",
    "half": "utf8?",
}


def row(k):
    rng = np.random.default_rng(k)
    return {
        "image": containers.jpeg(k),
        "number": int(rng.integers(-(2**63), 2**63 - 1)),
        "real": float(rng.standard_normal()),
        "flag": k % 3 == 0,
        "text": f"\u00e9 {k}",
        "data": rng.bytes(rng.integers(50)),
        "box": rng.standard_normal((2, 2)).astype(np.float32),
        "free": rng.integers(0, 99, k % 5).astype(np.int16),
        "ids": rng.integers(0, 99, k % 4).tolist(),
        "half": "here" if k % 2 else None,
    }


@pytest.fixture
def converted(tmp_path):
    """Return a Parquet file that Ingot made of rows."""
    with ingot.DatasetWriter(tmp_path / "x.ingot", SPEC) as writer:
        writer.extend(map(row, range(ROWS)))
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def compare(found):
    assert len(found) == ROWS
    for k, one in enumerate(found):
        known = row(k)
        known |= {name: known[name].tolist() for name in ("box", "free")}
        assert one == known


def test_pyarrow_reads_every_value_that_ingot_converted(converted):
    compare(pyarrow.parquet.read_table(converted).to_pylist())
