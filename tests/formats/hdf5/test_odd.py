"""HDF5 files that h5py reads, with what is not to be had of most others."""

import os
import resource
import subprocess
import sys

import h5py
import numpy as np
import pytest
from h5py import h5a, h5d, h5s, h5t

import ingot


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.h5"


def test_numbers_that_json_lacks_are_text_in_metadata(path, tmp_path):
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3.0)
        file["x"].attrs["_FillValue"] = np.nan
        file["x"].attrs["range"] = [-np.inf, 1.5]
        file["x"].attrs.create("unit", b"\xb0C", dtype=h5py.string_dtype("utf-8"))
    expected = {"x@_FillValue": "nan", "x@range": ["-inf", 1.5], "x@unit": "\\xb0C"}
    with ingot.open(path) as ds:
        assert ds.metadata == expected
        ds.save(tmp_path / "x.ingot")
    assert ingot.open(tmp_path / "x.ingot").metadata == expected


def test_attributes_that_numpy_lacks_are_left_out(path):
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3)
        h5a.create(file["x"].id, b"time", h5t.UNIX_D32LE, h5s.create(h5s.SCALAR))
        file["x"].attrs["kept"] = 1
    assert ingot.open(path).metadata == {"x@kept": 1}


def test_names_that_are_not_text_hide_nothing_else(path):
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3)
        h5d.create(file.id, b"gr\xf6\xdfe", h5t.STD_I32LE, h5s.create_simple((3,)))
        file.create_group("good")["y"] = np.arange(3)
    with ingot.open(path) as ds:
        assert dict(ds.spec) == {"good.y": "array(int64)", "x": "array(int64)"}
        assert ds.column("x").tolist() == [0, 1, 2]


def test_rows_that_are_only_declared_cost_nothing_until_they_are_read(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (2**40,), "i1", chunks=(1024,))
    code = (
        "import ingot, itertools, sys\n"
        "ds = ingot.open(sys.argv[1])\n"
        "assert [row['x'] for row in itertools.islice(ds, 1000)] == [0] * 1000\n"
        "assert ds[2**40 - 1]['x'] == 0 and len(ds[5:][10:]) == 2**40 - 15\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, path],
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)),
    )


def test_a_pipe_is_rejected(path):
    os.mkfifo(path)
    with pytest.raises(ingot.FormatError, match="not a regular file"):
        ingot.open(path)


def test_a_misspelt_path_is_answered_with_existing_names(path):
    with h5py.File(path, "w") as file:
        file["train/image"] = np.arange(3)
        file["train/label"] = np.arange(3)
    with pytest.raises(ingot.FormatError, match=r"x\.h5/train: there is no .imag., .*'image'"):
        ingot.open(f"{path}/train/imag")
    with pytest.raises(ingot.FormatError, match=r"did you mean 'train'\?"):
        ingot.open(f"{path}/trian")
