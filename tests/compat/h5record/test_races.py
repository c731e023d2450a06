"""Files that others replace, make or share while rows are written to them."""

import os

import h5py
import numpy as np
import pytest

import ingot
from ingot.compat.h5record import H5Dataset, Integer

SCHEMA = [Integer("a")]
SUFFIXES = [".h5", ".ingot"]


def rows(start, stop):
    return [{"a": k} for k in range(start, stop)]


def values(path):
    with ingot.open(path) as ds:
        return ds.column("a").reshape(-1).tolist()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_was_replaced_while_rows_were_added_stays(tmp_path, suffix):
    path, other = tmp_path / f"x{suffix}", tmp_path / f"y{suffix}"
    H5Dataset(SCHEMA, path, rows(0, 5)).close()

    def given():
        yield {"a": 5}
        H5Dataset(SCHEMA, other, rows(0, 5000)).close()
        other.replace(path)
        yield {"a": 6}

    with pytest.raises(ingot.StorageError) as caught:
        H5Dataset(SCHEMA, path, given(), append_mode=True)
    assert "as before" not in "".join(caught.value.__notes__) or suffix == ".h5"
    assert values(path) == list(range(5000))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_rows_that_others_have_added_in_place_stay(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.arange(5), maxshape=(None,))

    def given():
        yield {"a": 5}
        with h5py.File(path, "r+") as file:
            file["a"].resize(1000, axis=0)
        yield {"a": 6}

    with pytest.raises(ingot.StorageError, match="add the rows again"):
        H5Dataset(SCHEMA, path, given(), append_mode=True)
    assert len(values(path)) == 1000


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("begun", [0, 500])
def test_a_child_that_ends_leaves_the_file_to_its_parent(tmp_path, run_fault, suffix, when, begun):
    path = tmp_path / f"x{suffix}"
    outcome = run_fault("h5record_forks.py", path, when, begun)
    assert (outcome.returncode, outcome.stdout) == (0, "ok"), outcome.stderr
    assert values(path) == list(range(begun + 700))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_file_created_meanwhile_is_kept_and_so_are_the_rows(tmp_path):
    path, other = tmp_path / "x.h5", tmp_path / "y.h5"

    def given():
        yield from rows(0, 10)
        H5Dataset(SCHEMA, other, rows(0, 50)).close()
        other.rename(path)
        yield from rows(10, 20)

    with pytest.raises(FileExistsError) as caught:
        H5Dataset(SCHEMA, path, given())
    assert any("20 rows are kept in x.h5.partial" in note for note in caught.value.__notes__)
    assert len(values(path)) == 50
    with pytest.raises(ingot.FormatError, match="move one of them away"):
        H5Dataset(SCHEMA, path, rows(0, 3), append_mode=True)
    assert len(values(path)) == 50
    with h5py.File(tmp_path / "x.h5.partial") as file:
        assert len(file["a"]) == 20


@pytest.mark.parametrize("name", ["x.h5", "x.h5.partial"])
def test_pipes_are_rejected(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises((ingot.FormatError, OSError)):
        H5Dataset(SCHEMA, tmp_path / "x.h5", rows(0, 3))
    with pytest.raises((ingot.FormatError, FileNotFoundError)):
        ingot.open(tmp_path / "x.h5")


def test_a_link_to_itself_is_an_error_of_the_system(tmp_path):
    path = tmp_path / "x.h5"
    path.symlink_to(path)
    with pytest.raises((OSError, ingot.IngotError)):
        H5Dataset(SCHEMA, path, rows(0, 3))


def test_columns_that_cannot_grow_are_named(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(3)
    with pytest.raises(ValueError, match="made for at most 3 rows"):
        H5Dataset(SCHEMA, path, rows(0, 1), append_mode=True)
    assert [one.name for one in tmp_path.iterdir()] == ["x.h5"]


def test_rows_are_added_beside_single_values(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.arange(3), maxshape=(None,))
        file["version"] = 5
        file["nothing"] = h5py.Empty("f4")
    H5Dataset(SCHEMA, path, rows(3, 6), append_mode=True).close()
    with h5py.File(path) as file:
        assert file["a"][:].tolist() == list(range(6))
        assert file["version"][()] == 5


@pytest.mark.parametrize("name", ["", ".", "/", "a/b", "a\0", "\ud800"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_no_file_can_have_are_rejected(tmp_path, suffix, name):
    with pytest.raises(ValueError, match="invalid attribute name"):
        H5Dataset([Integer(name)], tmp_path / f"x{suffix}", [{name: 1}])
    assert not list(tmp_path.iterdir())


def test_absurd_lengths_are_rejected(tmp_path):
    for length in (-1, 2**63, 2**70):
        with pytest.raises(ValueError, match="data_length must be a number of rows"):
            H5Dataset(SCHEMA, tmp_path / "x.h5", rows(0, 1), data_length=length)
