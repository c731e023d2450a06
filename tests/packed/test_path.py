import importlib.resources.abc
import os
from pathlib import PurePosixPath

import pytest

import ingot
from tests.packed.packs import TREE, write_pack


def test_paths_behave_as_those_of_pathlib(folder, source):
    everything = [source, *source.rglob("*"), source / "nope", source / "A.txt" / "x"]
    for real in everything:
        relative = PurePosixPath(real.relative_to(source))
        path = folder / str(relative)
        for member in ("name", "stem", "suffix", "parts"):
            assert getattr(path, member) == getattr(relative, member)
        for member in ("exists", "is_file", "is_dir"):
            assert getattr(path, member)() == getattr(real, member)()
        assert str(path) == str(relative)
        assert str(path.parent) == str(relative.parent)
        assert str(path / "x") == str(path.joinpath("x")) == str(relative / "x")
        assert path == folder.path(relative) == folder.path(*relative.parts)
        if real.is_dir():
            children = {str(child.relative_to(source)) for child in real.iterdir()}
            assert {str(child) for child in path.iterdir()} == children
        if real.is_file():
            assert path.read_bytes() == real.read_bytes()
            with path.open("rb") as stream:
                assert stream.read() == real.read_bytes()
    assert (folder / "images.txt").read_text() == "a list"
    assert (folder / "b.txt").read_text("latin-1") == "bytes \xff"
    assert (folder / "b.txt").read_text(errors="ignore") == "bytes "
    with (folder / "images.txt").open() as stream:
        assert stream.read() == "a list"
    with (folder / "b.txt").open(encoding="latin-1") as stream:
        assert stream.read() == "bytes \xff"


def test_the_neighbour_of_a_path_is_made_from_it(folder):
    path = folder / "images" / "1.png"
    assert path.with_suffix(".txt") == folder / "images" / "1.txt"
    assert path.with_name("2.png").read_bytes() == b"two"
    assert (path.parent / "labels" / path.with_suffix(".txt").name).read_text() == "cat"


def test_paths_are_ordered_and_hashed_by_what_they_name(folder, packed_path, tmp_path):
    ordered = [folder / "A.txt", folder / "images" / "1.png", folder / "images.txt"]
    assert sorted([ordered[2], ordered[0], ordered[1]]) == ordered
    assert ordered[0] < ordered[1] <= ordered[1]
    assert ordered[2] > ordered[0]
    again = ingot.PackedFolder(packed_path)
    assert again / "A.txt" == folder / "A.txt"
    assert hash(again / "A.txt") == hash(folder / "./A.txt")
    assert folder / "A.txt" != "A.txt"
    assert folder / "A.txt" != PurePosixPath("A.txt")
    other = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", {"A.txt": 0}))
    assert folder / "A.txt" != other / "A.txt"
    with pytest.raises(TypeError):
        folder / "A.txt" < "A.txt"  # noqa: B015
    with pytest.raises(TypeError):
        folder / 3
    with pytest.raises(ValueError, match="belongs to another pack"):
        folder.read_one(other / "A.txt")
    assert again.read_one(folder / "A.txt") == TREE["A.txt"]
    assert repr(folder / "A.txt") == f"<ingot.PackedPath 'A.txt' of {str(packed_path)!r}>"


def test_a_path_is_a_resource_but_not_an_os_path(folder):
    assert isinstance(folder / "A.txt", importlib.resources.abc.Traversable)
    with pytest.raises(TypeError):
        os.fspath(folder / "A.txt")


def test_errors_of_paths_match_pathlib(folder):
    with pytest.raises(FileNotFoundError):
        (folder / "nope").read_bytes()
    with pytest.raises(FileNotFoundError):
        (folder / "/A.txt").read_bytes()
    with pytest.raises(FileNotFoundError):
        (folder / ".." / "A.txt").open()
    with pytest.raises(IsADirectoryError):
        (folder / "images").read_text()
    with pytest.raises(NotADirectoryError):
        (folder / "A.txt").iterdir()
    with pytest.raises(FileNotFoundError):
        (folder / "nope").iterdir()
