"""HDF5 files that `ingot.formats.hdf5.Hdf5Writer` writes, batch by batch."""

import numpy as np
import pytest

import ingot
from ingot.formats.hdf5 import Hdf5Writer, NewColumn, partial_path

COLUMNS = [NewColumn("x", np.dtype("f4"), (2,)), NewColumn("n", np.dtype("i8"), ())]


def batch(start, count):
    return {"x": np.full((count, 2), start, "f4"), "n": np.arange(start, start + count)}


def test_a_file_appears_with_all_its_batches_at_the_end_of_a_with_block(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Hdf5Writer.create("x.h5", COLUMNS) as writer:
        writer.write(batch(0, 3))
        writer.write(batch(3, 2))
        assert (writer.rows, (tmp_path / "x.h5").exists()) == (5, False)
    assert ingot.open("x.h5").column("n").tolist() == [0, 1, 2, 3, 4]
    with Hdf5Writer.append("x.h5") as writer:
        assert (writer.begun, writer.columns) == (5, [COLUMNS[1], COLUMNS[0]])
        writer.write(batch(5, 1))
    assert ingot.open("x.h5")[-1]["x"].tolist() == [5, 5]


def test_an_exception_keeps_the_rows_so_far_and_append_continues_them(tmp_path):
    path = tmp_path / "x.h5"
    with pytest.raises(KeyError), Hdf5Writer.create(path, COLUMNS) as writer:  # noqa: PT012
        writer.write(batch(0, 3))
        raise KeyError
    assert (path.exists(), partial_path(path).exists()) == (False, True)
    with Hdf5Writer.append(path) as writer:
        assert writer.rows == 3
        writer.write(batch(3, 1))
    assert ingot.open(path).column("n").tolist() == [0, 1, 2, 3]
    assert [one.name for one in tmp_path.iterdir()] == ["x.h5"]
