"""FFRecord's packed folders, against golden files of the real package."""

import hashlib
import pickle
from collections import OrderedDict
from os import mkfifo
from pathlib import Path

import pytest

import ingot
from ingot.compat import ffrecord
from tests.compat.ffrecord.files import FILES, golden, names, write

PACKED = ["packed.ffr", "packed_proto2.ffr", "packed_proto3.ffr", "packed_proto5.ffr"]


@pytest.mark.parametrize("name", PACKED)
def test_golden_packed_folders_read_as_they_were_packed(name):
    members = FILES["packed.ffr"]["members"]
    folder = ffrecord.PackedFolder(golden(name))
    assert folder.num_files() == len(members) == 311
    found = folder.read([member["path"] for member in members])
    for member, array in zip(members, found, strict=True):
        assert hashlib.sha256(array).hexdigest() == member["sha256"], member["path"]
    assert folder.list() == FILES["packed.ffr"]["top_level_list"]
    paths = [member["path"] for member in members]
    assert folder.list(list_dir=False, recursive=True) == paths
    dirs = FILES["packed.ffr"]["dirs"]
    assert sorted(folder.list(list_file=False, recursive=True)) == sorted(dirs)
    assert all(folder.is_dir(path) and not folder.is_file(path) for path in ["", ".", *dirs])
    assert all(folder.is_file(path) and folder.exists(path) for path in paths)


def test_many_files_and_none_are_packed_folders():
    many = ffrecord.PackedFolder(golden("packed_many.ffr"))
    assert many.num_files() == len(many.list("d")) == 7000
    assert many.list() == ["d"]
    empty = ffrecord.PackedFolder(golden("packed_empty.ffr"))
    assert (empty.num_files(), empty.list(), empty.is_dir("")) == (0, [], True)


def make_folder(root, files, dirs=()):
    for name in dirs:
        (root / name).mkdir(parents=True)
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def test_packs_are_byte_for_byte_those_of_ffrecord(tmp_path):
    golden_folder = ffrecord.PackedFolder(golden("packed.ffr"))
    paths = golden_folder.list(list_dir=False, recursive=True)
    files = {path: bytes(golden_folder.read_one(path)) for path in paths}
    root = make_folder(tmp_path / "root", files, FILES["packed.ffr"]["dirs"])
    ffrecord.pack_folder(root, tmp_path / "x.ffr")
    assert (tmp_path / "x.ffr").read_bytes() == golden("packed.ffr").read_bytes()


def test_packing_a_folder_reports_progress(tmp_path, capsys):
    root = make_folder(tmp_path / "root", {"a": b"1", "b/c": b"2"})
    ffrecord.pack_folder(root, tmp_path / "x.ffr", verbose=True)
    assert capsys.readouterr().out == f"0/2 {root / 'a'}\n1/2 {root / 'b/c'}\n"


def test_names_that_are_not_text_survive(tmp_path):
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    root = make_folder(tmp_path / "root", {name: b"latin"})
    ffrecord.pack_folder(root, tmp_path / "x.ffr")
    folder = ffrecord.PackedFolder(tmp_path / "x.ffr")
    assert folder.list() == [name]
    assert bytes(folder.read_one(name)) == b"latin"


def test_paths_in_a_packed_folder(tmp_path):
    root = make_folder(tmp_path / "root", {"a.txt": b"1", "b/c.txt": b"2"})
    ffrecord.pack_folder(root, tmp_path / "x.ffr")
    folder = pickle.loads(pickle.dumps(ffrecord.PackedFolder(tmp_path / "x.ffr")))  # noqa: S301
    assert bytes(folder.read_one(Path("b") / "c.txt")) == b"2"
    for missing in ("c", "a.txt/x", "/a.txt", "../root/a.txt", "b/c.txt/d"):
        assert not folder.exists(missing)
        with pytest.raises(AssertionError, match="does not exist"):
            folder.read_one(missing)
    with pytest.raises(AssertionError, match="not a file but a directory"):
        folder.read_one("b")
    with pytest.raises(AssertionError, match="list or a tuple"):
        folder.read("a.txt")
    for wrong in ("c", "a.txt"):
        with pytest.raises(AssertionError, match=r"does not exist|not a directory"):
            folder.list(wrong)


def test_files_that_cannot_be_packed_are_named_and_nothing_is_left(tmp_path):
    root = make_folder(tmp_path / "root", {"a": b"1"})
    (root / "loop").symlink_to(root)
    with pytest.raises(AssertionError, match="loop is a link to a folder that contains it"):
        ffrecord.pack_folder(root, tmp_path / "x.ffr")
    (root / "loop").unlink()
    mkfifo(root / "pipe")
    with pytest.raises(AssertionError, match="pipe is neither"):
        ffrecord.pack_folder(root, tmp_path / "x.ffr")
    with pytest.raises(AssertionError, match="is not a folder"):
        ffrecord.pack_folder(root / "a", tmp_path / "x.ffr")
    assert names(tmp_path) == ["root"]


def test_a_file_that_is_not_a_packed_folder_is_rejected():
    for name in ("mixed.ffr", "empty.ffr"):
        with pytest.raises(ValueError, match="is not a packed folder"):
            ffrecord.PackedFolder(golden(name))


class Evil:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]

    def __repr__(self):
        return f"Evil{self.call}"


@pytest.mark.parametrize(
    "tree",
    [
        Evil(eval, "1 + 1"),
        Evil(open, "/dev/null"),
        {"a": Evil(print, "run")},
        OrderedDict(a=OrderedDict(b=Evil(getattr, "x", "upper"))),
        {"..": 0},
        {"a/b": 0},
        {"": 0},
        {"a\0": 0},
        {"a": 1},
        {"a": -1},
        {"a": "text"},
        {"a": 0.5},
        {1: 0},
        ["a"],
        None,
        {"a": [0]},
        {"a": True},
    ],
    ids=repr,
)
@pytest.mark.parametrize("protocol", range(6))
def test_a_hostile_tree_is_rejected_and_never_run(tmp_path, tree, protocol, capsys):
    record = b"piouhjgbr" + pickle.dumps(tree, protocol)
    path = write(tmp_path / "x.ffr", [b"content", record])
    with pytest.raises(ingot.CorruptFileError, match="the tree of the packed folder"):
        ffrecord.PackedFolder(path)
    assert capsys.readouterr().out == ""


def test_a_tree_of_any_depth_is_read_or_rejected(tmp_path):
    for depth, fits in ((900, True), (100_000, False)):
        level = b"\x80\x04" + b"}\x8c\x01a" * depth + b"}" + b"s" * depth + b"."
        path = write(tmp_path / "x.ffr", [b"piouhjgbr" + level])
        if fits:
            assert len(ffrecord.PackedFolder(path).list(recursive=True)) == depth
        else:
            with pytest.raises(ingot.CorruptFileError, match="nested more than"):
                ffrecord.PackedFolder(path)
