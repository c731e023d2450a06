import hashlib
import json
import os
import pickle

import pytest

import ingot
from tests.packed.packs import (
    FFRECORD,
    GOLDEN,
    MANIFEST,
    ORDER,
    SAME_TREE,
    TREE,
    flatten,
    read_back,
    write_ffrecord,
    write_pack,
)


def test_paths_may_be_as_long_as_a_system_takes_and_no_longer(tmp_path):
    tree = {"f" * 256: 0}
    for _ in range(14):
        tree = {"d" * 255: tree}
    longest = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", {"d" * 255: tree}))
    assert [len(path) for path in longest] == [4096]
    write_pack(tmp_path / "y.ingot", {"d" * 256: tree})
    with pytest.raises(ingot.FormatError, match="longer than 4096"):
        ingot.PackedFolder(tmp_path / "y.ingot")


def test_the_golden_pack_is_read():
    with ingot.PackedFolder(GOLDEN) as folder:
        assert list(folder.items()) == [(path, dict(flatten(TREE))[path]) for path in ORDER]
        assert folder.list(recursive=True, files=False)[0] == "emptydir"
        assert folder.reader.metadata == {"made": "once", "ingot.packed": 1}
        assert folder.verify().ok


@pytest.mark.parametrize("name", SAME_TREE)
def test_packs_of_ffrecord_are_read(name, tmp_path):
    members = MANIFEST["packed.ffr"]["members"]
    with ingot.PackedFolder(FFRECORD / name) as folder:
        assert folder.num_files == MANIFEST[name]["num_files"] == len(members)
        assert list(folder) == [member["path"] for member in members]
        assert folder.list() == MANIFEST[name]["top_level_list"]
        assert folder.list(recursive=True, files=False) == MANIFEST[name]["dirs"]
        contents = folder.read(list(folder))
        assert folder.sizes(list(folder)) == [member["size"] for member in members]
        sums = [hashlib.sha256(content).hexdigest() for content in contents]
        assert sums == [member["sha256"] for member in members]
        assert folder.verify().ok
        assert list(pickle.loads(pickle.dumps(folder)).values()) == contents  # noqa: S301
        folder.unpack(tmp_path / "target")
    ingot.pack(tmp_path / "target", tmp_path / "x.ingot")
    with ingot.PackedFolder(tmp_path / "x.ingot") as again:
        assert list(again.items()) == list(zip(folder, contents, strict=True))
        assert list(again.walk()) == list(folder.walk())


def test_a_pack_of_ffrecord_with_many_files_is_read():
    with ingot.PackedFolder(FFRECORD / "packed_many.ffr") as folder:
        assert list(folder) == [f"d/f{k:05d}" for k in range(7000)]
        assert list(folder.values()) == [bytes([k % 251]) * (k % 3) for k in range(7000)]


def test_an_empty_pack_of_ffrecord_is_read(tmp_path):
    with ingot.PackedFolder(FFRECORD / "packed_empty.ffr") as folder:
        assert folder.num_files == len(folder) == 0
        assert folder.list() == []
        assert list(folder.walk()) == [("", [], [])]
        folder.unpack(tmp_path / "target")
    assert read_back(tmp_path / "target") == {}


PICKLES = {
    "runs a program": b"cos\nsystem\n(S'touch ran'\ntR.",
    "evaluates": b'c__builtin__\neval\n(S\'open("ran", "w")\'\ntR.',
    "imports by stack": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\ttouch ran\x85R.",
    "not a tree": b"\x80\x04K\x01.",
    "a list": b"\x80\x04].",
    "cut short": b"\x80\x04\x95",
    "empty": b"",
    "garbage": b"\xff" * 100,
    "index out of range": pickle.dumps({"a": 5}, 4),
    "deep": b"\x80\x04" + b"}\x8c\x01a" * 100_000 + b"K\x00" + b"s" * 100_000 + b".",
}


@pytest.mark.parametrize("content", PICKLES.values(), ids=PICKLES.keys())
def test_the_pickle_of_a_pack_of_ffrecord_is_never_run(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    path = write_ffrecord(tmp_path / "x.ffr", [b"a file", b"piouhjgbr" + content])
    with pytest.raises(ingot.FormatError, match=r"x\.ffr: "):
        ingot.PackedFolder(path)
    assert os.listdir() == ["x.ffr"]  # noqa: PTH208


def test_a_file_that_is_not_a_pack_is_rejected(tmp_path, make):
    for path in (make([b"a record"]), make([], name="y.ingot"), make([b"{}"], name="z.ingot")):
        with pytest.raises(ingot.FormatError, match="not a packed folder") as caught:
            ingot.PackedFolder(path)
        assert caught.value.path == str(path)
    with pytest.raises(ingot.FormatError, match="not a packed folder"):
        ingot.PackedFolder(write_ffrecord(tmp_path / "x.ffr", [b"a record"]))
    (tmp_path / "text.ingot").write_bytes(b"some text that is no record file" * 10)
    with pytest.raises(ingot.FormatError):
        ingot.PackedFolder(tmp_path / "text.ingot")
    with pytest.raises(FileNotFoundError):
        ingot.PackedFolder(tmp_path / "missing.ingot")


def test_a_pack_is_one_file(tmp_path):
    (tmp_path / "packs").mkdir()
    for name in ("a.ingot", "b.ingot"):
        write_pack(tmp_path / "packs" / name, {"x": 0})
    with pytest.raises(ingot.FormatError, match="expected a pack in one file, got 2"):
        ingot.PackedFolder(tmp_path / "packs" / "*.ingot")


def test_a_pack_of_a_later_version_is_not_reported_as_damaged(tmp_path):
    record = json.dumps({"version": 2, "tree": {}}).encode()
    by_metadata = write_pack(tmp_path / "x.ingot", {}, metadata={"ingot.packed": 2})
    by_record = write_pack(tmp_path / "y.ingot", record)
    for path in (by_metadata, by_record):
        with pytest.raises(ingot.UnsupportedVersionError) as caught:
            ingot.PackedFolder(path)
        assert (caught.value.found, caught.value.supported) == (2, 1)
    for version in ("1", 0, -1, True, 1.0, None, [1]):
        record = json.dumps({"version": version, "tree": {}}).encode()
        with pytest.raises(ingot.FormatError, match="version"):
            ingot.PackedFolder(write_pack(tmp_path / f"{version}.ingot", record))


RECORDS = {
    "empty": b"",
    "cut short": b'{"version":1,"tree":{"a":0}',
    "not UTF-8": b'{"version":1,"tree":{"\xff":0}}',
    "UTF-16": '{"version":1,"tree":{}}'.encode("utf-16"),
    "list": b"[]",
    "number": b"1",
    "no tree": b'{"version":1}',
    "tree is a list": b'{"version":1,"tree":[]}',
    "tree is a record": b'{"version":1,"tree":0}',
    "two of a name": b'{"version":1,"tree":{"a":0,"a":1}}',
    "two of a name below": b'{"version":1,"tree":{"d":{"a":0,"\\u0061":1}}}',
    "NaN": b'{"version":1,"tree":{"a":NaN}}',
    "long number": b'{"version":1,"tree":{"a":%s}}' % (b"1" * 100_000),
    "deep folders": b'{"version":1,"tree":' + b'{"a":' * 100_000 + b"0" + b"}" * 100_001 + b"}",
    "deep lists": b'{"version":1,"tree":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "deep and open": b"[" * 10_000_000,
    "deep behind a quote": b'{"\\\\":' + b'"\\"' + b'",' + b'"a":[' * 100_000,
    "open string": b'{"' + b'\\"{' * 100_000,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_invalid_trees_are_rejected(tmp_path, record):
    with pytest.raises(ingot.FormatError, match=r"x\.ingot: .*(tree|version)"):
        ingot.PackedFolder(write_pack(tmp_path / "x.ingot", record))


@pytest.mark.parametrize("entry", [-1, 2, 10**30, 0.0, 1.5, True, None, "0", [0], [], -(2**63)])
def test_an_entry_that_is_not_a_record_of_the_file_is_rejected(tmp_path, entry):
    for number, tree in enumerate(({"a": entry}, {"d": {"b": 0, "a": entry}})):
        with pytest.raises(ingot.FormatError, match="'a' in the tree of this pack is"):
            ingot.PackedFolder(write_pack(tmp_path / f"{number}.ingot", tree))


BAD_NAMES = ["", ".", "..", "/", "a/b", "/a", "a/", "../a", "..//", "\0", "a\0", "a\0/..", "//"]


@pytest.mark.parametrize("entry", [0, {}, {"inside": 0}], ids=["file", "empty", "folder"])
@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_could_lead_elsewhere_is_rejected(tmp_path, name, entry):
    for number, tree in enumerate(({name: entry}, {"d": {"ok": 1, name: entry}})):
        with pytest.raises(ingot.FormatError, match="is not a valid file name"):
            ingot.PackedFolder(write_pack(tmp_path / f"{number}.ingot", tree))


def test_names_that_only_look_dangerous_stay_inside(tmp_path):
    names = ["...", "..a", "C:", "C:\\x", "..\\a", "\\\\host", "~", "$HOME", "a ", "a.", "con"]
    names += ["\u202e", "\uff0f", "\u2024\u2024", "%2e%2e", "-rf", "*", "\n", "\x7f", "\x01"]
    folder = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", dict.fromkeys(names, 0)))
    assert list(folder) == names
    folder.unpack(tmp_path / "target")
    assert read_back(tmp_path / "target") == dict.fromkeys(names, b"first")
    assert sorted(os.listdir(tmp_path)) == ["target", "x.ingot"]  # noqa: PTH208


def test_several_files_may_share_a_record(tmp_path):
    folder = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", {"a": 1, "b": {"c": 1}}))
    assert folder.read(["a", "b/c"]) == [b"second", b"second"]
    assert len(folder) == 2
    folder.unpack(tmp_path / "target")
    assert read_back(tmp_path / "target") == {"a": b"second", "b": {"c": b"second"}}


def test_a_folder_is_not_a_pack(tmp_path):
    with pytest.raises(IsADirectoryError, match="a pack must be a file"):
        ingot.PackedFolder(tmp_path)


def test_two_names_that_are_one_on_a_disk_are_rejected(tmp_path):
    path = write_pack(tmp_path / "x.ingot", {"\xe9": 0, "\udcc3\udca9": 0})
    with pytest.raises(ingot.FormatError, match="the same file name on disk"):
        ingot.PackedFolder(path)
