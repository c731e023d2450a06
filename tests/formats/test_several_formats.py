"""Data sets of several formats, opened as one."""

import gzip
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import feather, parquet

import ingot

SPEC = {"n": "int", "t": "utf8"}
NAMES = ["a.csv", "b.jsonl", "c.jsonl.gz", "d.parquet", "e.arrow", "saved", "rows", "f.ingot"]
ROWS = [{"n": k, "t": f"row {k}"} for k in range(len(NAMES))]


def save(table, folder):
    """Write a table as Hugging Face's datasets save it."""
    folder.mkdir()
    with pa.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")


@pytest.fixture
def sources(tmp_path):
    """One row in each of several formats."""
    tables = [pa.Table.from_pylist([row]) for row in ROWS]
    paths = [tmp_path / name for name in NAMES]
    paths[0].write_text("n,t\n0,row 0\n")
    paths[1].write_text('{"n": 1, "t": "row 1"}\n')
    paths[2].write_bytes(gzip.compress(b'{"n": 2, "t": "row 2"}\n'))
    parquet.write_table(tables[3], paths[3])
    feather.write_feather(tables[4], paths[4])
    save(tables[5], paths[5])
    for path, row in zip(paths[6:], ROWS[6:], strict=True):
        with ingot.DatasetWriter(path, SPEC) as writer:
            writer.append(row)
    return paths


def test_they_are_one_after_the_other(sources):
    ds = ingot.open(sources)
    assert list(ds) == ROWS
    assert pickle.loads(pickle.dumps(ds))[::-1].read()["n"].tolist() == [*range(len(ROWS))][::-1]  # noqa: S301
    assert [row["n"] for row in ingot.open(sources[::-1])] == [*range(len(ROWS))][::-1]


def test_a_list_of_one_is_that_one(sources, tmp_path):
    ingot.convert(sources[0], tmp_path / "granular", format="granular")
    (tmp_path / "images" / "cats").mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(tmp_path / "images" / "cats" / "0.png")
    for place in [*sources, tmp_path / "granular", tmp_path / "images"]:
        one, alone = ingot.open([place]), ingot.open(place)
        assert (dict(one.spec), len(one)) == (dict(alone.spec), len(alone)), place
        assert str(one[0]) == str(alone[0])


@pytest.mark.parametrize("name", ["out", "out.ingot", "out.parquet", "out.h5"])
def test_they_are_converted_as_one(sources, tmp_path, name):
    assert ingot.convert(sources, tmp_path / name).rows == len(ROWS)
    assert list(ingot.open(tmp_path / name)) == ROWS


def test_directories_are_opened_by_their_manifests(tmp_path):
    for k, name in enumerate("ab"):
        with ingot.DatasetWriter(tmp_path / name, SPEC) as writer:
            writer.append(ROWS[k])
    with ingot.DatasetWriter(tmp_path / "extra.ingot", SPEC) as writer:
        writer.append(ROWS[5])
    (tmp_path / "extra.ingot").rename(tmp_path / "a" / "extra.ingot")
    assert list(ingot.open([tmp_path / "a", tmp_path / "b"])) == ROWS[:2]


def test_fields_that_differ_are_named(sources, tmp_path):
    (tmp_path / "z.csv").write_text("n,other\n1,2\n")
    with pytest.raises(ingot.FormatError, match=r"z\.csv has the fields .*other.*, but .*rows has"):
        ingot.open([sources[6], tmp_path / "z.csv"])


def test_a_pattern_has_one_format(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    np.save(tmp_path / "b.npy", np.zeros(1))
    with pytest.raises(ingot.FormatError, match=r"b\.npy: this is an \.npy file, but .*a\.csv is "):
        ingot.open(tmp_path / "*.*")


def test_records_and_rows_are_not_one(sources, tmp_path):
    with ingot.Writer(tmp_path / "r.ingot") as writer:
        writer.append(b"record")
    with pytest.raises(ingot.FormatError):
        ingot.open([sources[0], tmp_path / "r.ingot"])
