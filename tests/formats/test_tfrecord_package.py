"""TFRecord files, as the package `tfrecord` writes them, and as it reads those of Ingot."""

import numpy as np
import pytest
from tfrecord import TFRecordWriter, tfrecord_loader
from tfrecord.tools.tfrecord2idx import create_index

import ingot
from tests.support import containers

ROWS = 80
KINDS = {
    "one_int": "int",
    "ints": "int",
    "one_float": "float",
    "floats": "float",
    "one_bytes": "byte",
    "many_bytes": "byte",
}


def example(k):
    """Return features of every kind, of one value and of several."""
    rng = np.random.default_rng(k)
    count = 1 + k % 5
    return {
        "one_int": int(rng.integers(-(2**63), 2**63 - 1)),
        "ints": rng.integers(-(2**63), 2**63 - 1, count).tolist(),
        "one_float": float(np.float32(rng.standard_normal())),
        "floats": rng.standard_normal(count).astype(np.float32).tolist(),
        "one_bytes": rng.bytes(rng.integers(200)),
        "many_bytes": [rng.bytes(rng.integers(20)) for _ in range(count)],
    }


def steps(k):
    """Return feature lists: one value in each step, and several."""
    rng = np.random.default_rng(1000 + k)
    count = 1 + k % 4
    return {
        "token": rng.integers(-99, 99, count).tolist(),
        "vector": rng.standard_normal((count, 3)).astype(np.float32).tolist(),
        "word": [rng.bytes(rng.integers(9)) for _ in range(count)],
    }


def kinds(features, names):
    return {name: (value, names[name]) for name, value in features.items()}


def plain(value):
    """Return a value without NumPy."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def write(path, *, sequences=False):
    """Write with the package."""
    writer = TFRecordWriter(str(path))
    for k in range(ROWS):
        lists = kinds(steps(k), {"token": "int", "vector": "float", "word": "byte"})
        writer.write(kinds(example(k), KINDS), lists if sequences else None)
    writer.close()
    return path


def test_every_feature_of_every_example_comes_out_as_it_went_in(tmp_path):
    ds = ingot.open(write(tmp_path / "x.tfrecord"))
    assert dict(ds.spec) == {
        "floats": "array(float32)[]",
        "ints": "int[]",
        "many_bytes": "bytes[]",
        "one_bytes": "bytes",
        "one_float": "array(float32)",
        "one_int": "int",
    }
    for k, row in enumerate(ds):
        assert {name: plain(value) for name, value in row.items()} == example(k)
    asked = np.random.default_rng(0).permutation(ROWS)
    assert ds[asked]["one_int"].tolist() == [example(k)["one_int"] for k in asked]
    assert list(ds[asked]["one_bytes"]) == [example(k)["one_bytes"] for k in asked]


def test_every_step_of_every_sequence_example_comes_out_as_it_went_in(tmp_path):
    ds = ingot.open(write(tmp_path / "x.tfrecord", sequences=True))
    assert ds.spec["vector"] == "array(float32,3)[]"
    for k, row in enumerate(ds):
        assert {name: plain(value) for name, value in row.items()} == example(k) | steps(k)


def test_shards_of_the_package_are_one_data_set(tmp_path):
    for k in range(3):
        write(tmp_path / f"x.tfrecord-{k}")
    ds = ingot.open(str(tmp_path / "x.tfrecord-*"))
    assert len(ds) == 3 * ROWS
    assert ds[ROWS + 7]["one_int"] == example(7)["one_int"]


SPEC = {
    "image": "jpg",
    "number": "int",
    "flag": "bool",
    "real": "array(float32)",
    "text": "utf8",
    "box": "array(float32,2,2)",
    "ids": "int[]",
    "tags": "utf8[]",
    "half": "utf8?",
}


def typed_row(k):
    """Return a row of `SPEC`."""
    rng = np.random.default_rng(k)
    return {
        "image": containers.jpeg(k),
        "number": example(k)["one_int"],
        "flag": k % 3 == 0,
        "real": np.float32(rng.standard_normal()),
        "text": f"\u00e9 {k}",
        "box": rng.standard_normal((2, 2)).astype(np.float32),
        "ids": example(k)["ints"],
        "tags": [f"{k}", "", "\u4e2d"],
        "half": "here" if k % 2 else None,
    }


@pytest.fixture
def converted(tmp_path):
    """Return a TFRecord file that Ingot made of rows."""
    with ingot.DatasetWriter(tmp_path / "rows.ingot", SPEC) as writer:
        writer.extend(map(typed_row, range(ROWS)))
    ingot.convert(tmp_path / "rows.ingot", tmp_path / "rows.tfrecord")
    return tmp_path / "rows.tfrecord"


def test_the_package_reads_every_value_that_ingot_converted(converted):
    found = list(tfrecord_loader(str(converted), None))
    assert len(found) == ROWS
    for k, one in enumerate(found):
        row = typed_row(k)
        assert one.keys() == {name for name, value in row.items() if value is not None}
        assert one["image"] == row["image"]
        assert one["text"].decode() == row["text"]
        assert one.get("half", b"").decode() == (row["half"] or "")
        assert [tag.decode() for tag in one["tags"]] == row["tags"]
        for name in ("number", "flag", "real", "box", "ids"):
            assert one[name].tolist() == np.ravel(row[name]).tolist(), name


def test_the_index_of_the_package_finds_the_records_that_ingot_converted(converted, tmp_path):
    index = str(tmp_path / "x.index")
    create_index(str(converted), index)
    parts = [
        tfrecord_loader(str(converted), index, {"number": "int"}, shard=(k, 3)) for k in range(3)
    ]
    found = [int(one["number"][0]) for part in parts for one in part]
    assert found == [typed_row(k)["number"] for k in range(ROWS)]
