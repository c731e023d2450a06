import copy
import gc
import hashlib
import importlib.resources.abc
import io
import itertools
import json
import os
import pickle
import resource
import shutil
import socket
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ingot

GOLDEN = Path(__file__).parent / "data" / "packed" / "v1.ingot"
FFRECORD = Path(__file__).parent / "data" / "ffrecord"
MANIFEST = json.loads((FFRECORD / "manifest.json").read_text())["files"]
SAME_TREE = ["packed.ffr", "packed_proto2.ffr", "packed_proto3.ffr", "packed_proto5.ffr"]

TREE = {
    "A.txt": b"upper case sorts first",
    "b.txt": b"bytes \xff",
    "empty": b"",
    "emptydir": {},
    "images": {"1.png": b"one", "10.png": b"ten", "2.png": b"two", "labels": {"1.txt": b"cat"}},
    "images.txt": b"a list",
    "sub": {"deep": {"er": {"x.tar.gz": b"deep down"}, "noext": b"n"}, ".hidden": b"h"},
    "\u6f22\u5b57 and space": b"\x00" * 1000,
}
ORDER = [
    "A.txt",
    "b.txt",
    "empty",
    "images/1.png",
    "images/10.png",
    "images/2.png",
    "images/labels/1.txt",
    "images.txt",
    "sub/.hidden",
    "sub/deep/er/x.tar.gz",
    "sub/deep/noext",
    "\u6f22\u5b57 and space",
]


def build(folder, tree):
    folder.mkdir()
    for name, entry in tree.items():
        if isinstance(entry, dict):
            build(folder / name, entry)
        else:
            (folder / name).write_bytes(entry)


def read_back(folder):
    """Return a folder on disk as the tree it was built from."""
    return {
        entry.name: read_back(Path(entry.path)) if entry.is_dir() else Path(entry.path).read_bytes()
        for entry in os.scandir(folder)
    }


def flatten(tree, prefix=""):
    for name, entry in tree.items():
        if isinstance(entry, dict):
            yield from flatten(entry, f"{prefix}{name}/")
        else:
            yield prefix + name, entry


def write_pack(path, tree, *, files=(b"first", b"second"), metadata=None):
    """Write a pack with any bytes, or any JSON, in the place of its tree."""
    record = tree if isinstance(tree, bytes) else json.dumps({"version": 1, "tree": tree}).encode()
    marked = {"ingot.packed": 1} if metadata is None else metadata
    with ingot.Writer(path, metadata=marked) as writer:
        writer.extend([*files, record])
    return path


def write_ffrecord(path, records):
    offsets = itertools.accumulate(map(len, records[:-1]), initial=12 + 12 * len(records))
    checksums = map(zlib.crc32, records)
    head = struct.pack(
        f"<q{len(records)}I{len(records)}q", len(records), *checksums, *list(offsets)
    )
    path.write_bytes(struct.pack("<I", zlib.crc32(head)) + head + b"".join(records))
    return path


@contextmanager
def without_privileges():
    """Drop the right of the superuser to write where nobody may."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@contextmanager
def no_file_larger_than(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed") / "source"
    build(folder, TREE)
    return folder


@pytest.fixture(scope="module")
def packed_path(source):
    target = source.parent / "x.ingot"
    ingot.pack(source, target, metadata={"made": "here"})
    return target


@pytest.fixture(scope="module")
def folder(packed_path):
    with ingot.PackedFolder(packed_path) as folder:
        yield folder


@pytest.fixture
def native_reads(monkeypatch):
    """Return a list that grows by the rows of each call that reads records."""
    calls = []

    def wrap(name):
        original = getattr(ingot.Reader, name)

        def counted(self, rows, *others):
            calls.append(rows)
            return original(self, rows, *others)

        monkeypatch.setattr(ingot.Reader, name, counted)

    for name in ("__getitem__", "_read_buffer", "_sizes"):
        wrap(name)
    return calls


relaxed = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50
)
names = (
    st.text(min_size=1, max_size=20)
    | st.binary(min_size=1, max_size=30).map(os.fsdecode)
    | st.sampled_from(["C:\\x", "nul", "a ", "a.", "-", "~", "*", "[a]", '"', "\\", "{", "\n", "%"])
).filter(lambda name: name not in {".", ".."} and not set(name) & {"/", "\0"})
trees = st.dictionaries(
    names,
    st.recursive(
        st.binary(max_size=40),
        lambda below: st.dictionaries(names, below, max_size=4),
        max_leaves=12,
    ),
    max_size=5,
)


@relaxed
@given(tree=trees)
def test_what_is_packed_is_unpacked_again(tmp_path_factory, tree):
    base = tmp_path_factory.mktemp("round")
    build(base / "source", tree)
    ingot.pack(base / "source", base / "x.ingot")
    with ingot.PackedFolder(base / "x.ingot") as folder:
        assert dict(folder) == dict(folder.items()) == dict(flatten(tree))
        assert folder.num_files == len(folder) == len(list(flatten(tree)))
        assert folder.verify().ok
        folder.unpack(base / "target")
    assert read_back(base / "target") == tree


def test_files_are_depth_first_and_by_name(folder):
    assert list(folder) == ORDER
    records = list(folder.reader)
    assert records[:-1] == [dict(flatten(TREE))[path] for path in ORDER]


def test_the_last_record_is_the_tree_as_json(folder):
    loaded = json.loads(folder.reader[-1])
    assert loaded["version"] == 1
    assert list(loaded["tree"]) == sorted(TREE)
    assert loaded["tree"]["images"] == {"1.png": 3, "10.png": 4, "2.png": 5, "labels": {"1.txt": 6}}
    assert loaded["tree"]["emptydir"] == {}


def test_names_that_are_not_utf8_survive(tmp_path):
    (tmp_path / "source").mkdir()
    raw = os.fsencode(tmp_path / "source") + b"/caf\xe9\xff"
    with open(raw, "wb") as file:  # noqa: PTH123
        file.write(b"latin")
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    folder = ingot.PackedFolder(tmp_path / "x.ingot")
    assert list(folder) == ["caf\udce9\udcff"]
    assert folder.read_one(os.fsdecode(b"caf\xe9\xff")) == b"latin"
    folder.unpack(tmp_path / "target")
    assert os.listdir(os.fsencode(tmp_path / "target")) == [b"caf\xe9\xff"]  # noqa: PTH208


def test_metadata_of_the_user_stands_beside_the_mark(source, tmp_path, folder):
    assert folder.reader.metadata == {"made": "here", "ingot.packed": 1}
    given = {"ingot.packed": 7}
    ingot.pack(source, tmp_path / "x.ingot", metadata=given)
    assert ingot.PackedFolder(tmp_path / "x.ingot").reader.metadata == {"ingot.packed": 1}
    assert given == {"ingot.packed": 7}


@pytest.mark.parametrize("compression", ["auto", "zstd", "lz4", None])
def test_packs_may_be_compressed(tmp_path, compression):
    build(tmp_path / "source", {f"{k}": b"the same text again and again " * 40 for k in range(50)})
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot", compression=compression)
    folder = ingot.PackedFolder(tmp_path / "x.ingot")
    assert set(folder.values()) == {b"the same text again and again " * 40}
    assert (folder.reader.stats().file_bytes < 30_000) == (compression is not None)


def test_progress_is_reported_after_each_file(source, tmp_path, folder, capsys):
    seen = []
    ingot.pack(source, tmp_path / "x.ingot", progress=lambda *at: seen.append(at))
    folder.unpack(tmp_path / "target", progress=lambda *at: seen.append(at))
    assert seen == 2 * [(k + 1, len(ORDER)) for k in range(len(ORDER))]
    assert capsys.readouterr() == ("", "")
    ingot.pack(source, tmp_path / "y.ingot", progress=True)
    assert capsys.readouterr().err.endswith(f"\rpacked {len(ORDER)} of {len(ORDER)} files\n")
    folder.unpack(tmp_path / "other", progress=True)
    assert capsys.readouterr().err.endswith(f"\runpacked {len(ORDER)} of {len(ORDER)} files\n")


def test_links_to_files_and_folders_are_followed(tmp_path):
    build(tmp_path / "other", {"inside": b"i"})
    build(tmp_path / "source", {"a": b"a"})
    (tmp_path / "source" / "link").symlink_to("a")
    (tmp_path / "source" / "folder").symlink_to(tmp_path / "other")
    (tmp_path / "source" / "twin").symlink_to(tmp_path / "other")
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert dict(ingot.PackedFolder(tmp_path / "x.ingot")) == {
        "a": b"a",
        "folder/inside": b"i",
        "link": b"a",
        "twin/inside": b"i",
    }


@pytest.mark.parametrize("leads_to", [".", "..", "../../source", "../b"])
def test_a_link_back_to_a_folder_above_is_refused(tmp_path, leads_to):
    build(tmp_path / "source", {"a": b"", "b": {}})
    (tmp_path / "source" / "b" / "loop").symlink_to(leads_to)
    with pytest.raises(ValueError, match="source/b/loop: this link leads back"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert not (tmp_path / "x.ingot").exists()


def test_links_that_lead_nowhere_are_refused(tmp_path):
    build(tmp_path / "source", {})
    (tmp_path / "source" / "link").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="source/link"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    (tmp_path / "source" / "link").unlink()
    (tmp_path / "source" / "link").symlink_to("link")
    with pytest.raises(OSError, match="source/link"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")


@pytest.mark.timeout(10)
def test_special_files_are_refused_by_name(tmp_path):
    build(tmp_path / "source", {})
    os.mkfifo(tmp_path / "source" / "fifo")
    with pytest.raises(ValueError, match="source/fifo: this is a pipe"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    (tmp_path / "source" / "fifo").unlink()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "source" / "socket"))
        with pytest.raises(ValueError, match="source/socket: this is a socket"):
            ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    (tmp_path / "source" / "socket").unlink()
    (tmp_path / "source" / "null").symlink_to("/dev/null")
    with pytest.raises(ValueError, match="source/null: this is a device"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert not (tmp_path / "x.ingot").exists()


def test_an_unreadable_file_leaves_no_target(tmp_path):
    build(tmp_path / "source", {f"{k}": b"" for k in range(9000)})
    (tmp_path / "source" / "z").symlink_to("/proc/self/mem")  # reading it fails
    with pytest.raises(OSError, match=r"Input/output error"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert os.listdir(tmp_path) == ["source"]  # noqa: PTH208


def test_a_full_disk_leaves_no_target(tmp_path):
    build(tmp_path / "source", {f"{k}": os.urandom(100) for k in range(9000)})
    with no_file_larger_than(500_000), pytest.raises(ingot.StorageError):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert os.listdir(tmp_path) == ["source"]  # noqa: PTH208


def test_an_existing_target_is_replaced_only_if_asked_and_only_by_a_whole_pack(tmp_path):
    build(tmp_path / "source", {"a": b"old"})
    target = tmp_path / "x.ingot"
    ingot.pack(tmp_path / "source", target)
    (tmp_path / "source" / "a").write_bytes(b"new")
    with pytest.raises(FileExistsError, match="overwrite=True") as caught:
        ingot.pack(tmp_path / "source", target)
    assert caught.value.filename == str(target)
    (tmp_path / "source" / "z").symlink_to("/proc/self/mem")
    with pytest.raises(OSError, match=r"Input/output error"):
        ingot.pack(tmp_path / "source", target, overwrite=True)
    assert dict(ingot.PackedFolder(target)) == {"a": b"old"}
    (tmp_path / "source" / "z").unlink()
    ingot.pack(tmp_path / "source", target, overwrite=True)
    assert dict(ingot.PackedFolder(target)) == {"a": b"new"}
    assert sorted(os.listdir(tmp_path)) == ["source", "x.ingot"]  # noqa: PTH208


def test_a_target_in_the_folder_itself_is_refused(tmp_path):
    build(tmp_path / "source", {"b": {}})
    for target in ("source/x.ingot", "source/b/x.ingot", "source/../source/b/x.ingot"):
        with pytest.raises(ValueError, match="lies in the folder"):
            ingot.pack(tmp_path / "source", tmp_path / target, overwrite=True)
    assert read_back(tmp_path / "source") == {"b": {}}


def test_only_a_folder_can_be_packed(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        ingot.pack(tmp_path / "file", tmp_path / "x.ingot")
    with pytest.raises(FileNotFoundError):
        ingot.pack(tmp_path / "missing", tmp_path / "x.ingot")
    assert not (tmp_path / "x.ingot").exists()


def nested(depth):
    tree = {"f": 0}
    for _ in range(depth):
        tree = {"d": tree}
    return tree


def test_folders_may_lie_256_deep_in_one_another_and_no_deeper(tmp_path):
    deep = tmp_path / "source" / "/".join("d" * 256)
    deep.mkdir(parents=True)
    (deep / "f").write_bytes(b"deep")
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    folder = ingot.PackedFolder(tmp_path / "x.ingot")
    assert list(folder) == ["d/" * 256 + "f"]
    assert len(list(folder.walk())) == 257
    folder.unpack(tmp_path / "target")
    assert (tmp_path / "target" / list(folder)[0]).read_bytes() == b"deep"  # noqa: RUF015
    (deep / "d").mkdir()
    with pytest.raises(ValueError, match="at most 256 folders"):
        ingot.pack(tmp_path / "source", tmp_path / "y.ingot")
    write_pack(tmp_path / "z.ingot", nested(257))
    with pytest.raises(ingot.FormatError, match="deeper than 256"):
        ingot.PackedFolder(tmp_path / "z.ingot")


def test_paths_may_be_as_long_as_a_system_takes_and_no_longer(tmp_path):
    tree = {"f" * 256: 0}
    for _ in range(14):
        tree = {"d" * 255: tree}
    longest = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", {"d" * 255: tree}))
    assert [len(path) for path in longest] == [4096]
    write_pack(tmp_path / "y.ingot", {"d" * 256: tree})
    with pytest.raises(ingot.FormatError, match="longer than 4096"):
        ingot.PackedFolder(tmp_path / "y.ingot")


def test_unpacking_takes_no_memory_for_each_path(tmp_path):
    tree = {f"{k}": 0 for k in range(5000)}
    for _ in range(15):
        tree = {"d" * 255: tree}
    folder = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", tree, files=[b""]))
    tracemalloc.start()
    try:
        folder.unpack(tmp_path / "target")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_memory_is_bounded_while_packing_and_unpacking(tmp_path, run_fault):
    outcome = run_fault("pack_much.py", tmp_path, 80, 8 << 20, env={"INGOT_IO": "pread"})
    assert outcome.returncode == 0, outcome.stderr
    packing, unpacking = map(int, outcome.stdout.split())
    assert packing < 200 << 20
    assert unpacking < 200 << 20


def test_one_file_is_read_by_its_path(folder, source):
    for path in ORDER:
        assert folder.read_one(path) == (source / path).read_bytes()
        assert folder[path] == folder.read_one(PurePosixPath(path))
        assert folder.size(path) == (source / path).stat().st_size
    assert folder.sizes(ORDER) == [len(content) for content in folder.values()]


@pytest.mark.parametrize(
    "path",
    [
        "images/1.png",
        "./images/1.png",
        "images//1.png",
        "images/./1.png",
        "images/1.png/",
        PurePosixPath("images/1.png"),
        PureWindowsPath("images\\1.png"),
    ],
)
def test_paths_mean_what_they_mean_to_pathlib(folder, path):
    assert folder.read_one(path) == folder[path] == b"one"
    assert path in folder
    assert folder.is_file(path)


@pytest.mark.parametrize("root", ["", ".", "./", "./.", PurePosixPath()])
def test_the_root_is_empty_or_a_dot(folder, root):
    assert folder.exists(root)
    assert folder.is_dir(root)
    assert not folder.is_file(root)
    assert folder.list(root) == sorted(TREE)
    assert root not in folder


ABSENT = ["nope", "images/nope", "A.txt/x", "A.txt/x/y", "/A.txt", "/", "//", "..", "../A.txt"]
ABSENT += ["images/../A.txt", "images/..", "A.txt\0", "a.txt", "\ud800", "images\\1.png"]
ABSENT += ["x" * 100_000, "x/" * 100_000]


@pytest.mark.parametrize("path", ABSENT)
def test_what_does_not_exist_is_not_found(folder, path):
    assert not folder.exists(path)
    assert not folder.is_file(path)
    assert not folder.is_dir(path)
    assert path not in folder
    assert folder.get(path) is None
    for call in (
        folder.read_one,
        folder.size,
        folder.open,
        folder.list,
        lambda p: folder.read([p]),
    ):
        with pytest.raises(FileNotFoundError, match="no such file or folder in") as caught:
            call(path)
        assert caught.value.filename == path
    with pytest.raises(FileNotFoundError):
        next(folder.walk(path))
    with pytest.raises(KeyError):
        folder[path]
    assert list(folder.glob("*", path)) == []


def test_files_and_folders_are_told_apart(folder):
    for call in (folder.read_one, folder.size, folder.open, lambda path: folder.sizes([path])):
        with pytest.raises(IsADirectoryError, match="a folder, not a file"):
            call("images")
    with pytest.raises(IsADirectoryError):
        folder.read(["A.txt", ""])
    with pytest.raises(KeyError):
        folder["images"]
    with pytest.raises(NotADirectoryError, match="a file, not a folder"):
        folder.list("A.txt")
    with pytest.raises(NotADirectoryError):
        next(folder.walk("A.txt"))


def test_paths_are_text(folder):
    for path in (b"A.txt", 0, None, ["A.txt"]):
        with pytest.raises(TypeError):
            folder.read_one(path)
        with pytest.raises(TypeError):
            folder.exists(path)
        assert path not in folder
    for one in ("A.txt", PurePosixPath("A.txt"), folder / "A.txt"):
        with pytest.raises(TypeError, match="many paths are expected"):
            folder.read(one)


def test_many_files_are_one_native_read(folder, native_reads):
    wanted = ["images.txt", "A.txt", folder / "sub" / ".hidden", PurePosixPath("A.txt")]
    contents = folder.read(wanted)
    assert contents == [b"a list", TREE["A.txt"], b"h", TREE["A.txt"]]
    assert len(native_reads) == 1
    assert folder.read(iter(ORDER)) == [folder[path] for path in ORDER]
    assert folder.read([]) == []
    native_reads.clear()
    assert len(folder.sizes(ORDER)) == len(ORDER)
    assert len(native_reads) == 1


def test_unpacking_reads_in_batches(folder, native_reads, tmp_path):
    folder.unpack(tmp_path / "target")
    assert len(native_reads) == 2  # the lengths, and the contents


def test_a_damaged_file_is_named(tmp_path):
    build(tmp_path / "source", {f"{k}": b"content number %d" % k for k in range(9)})
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot", compression=None)
    content = bytearray((tmp_path / "x.ingot").read_bytes())
    content[content.index(b"content number 5")] ^= 1
    (tmp_path / "x.ingot").write_bytes(content)
    folder = ingot.PackedFolder(tmp_path / "x.ingot")
    with pytest.raises(ingot.CorruptFileError) as caught:
        folder.read(["7", "5", "3"])
    assert caught.value.record == 5
    assert caught.value.__notes__ == ["record 5 is the file '5' of this pack"]
    with pytest.raises(ingot.CorruptFileError):
        folder.read_one("5")
    assert [damage.record for damage in folder.verify().damaged] == [5]
    assert folder.read(["7", "3"]) == [b"content number 7", b"content number 3"]
    with pytest.raises(ingot.CorruptFileError):
        folder.unpack(tmp_path / "target")


def test_a_pack_is_a_mapping_of_files(folder, native_reads):
    assert isinstance(folder, Mapping)
    assert list(folder.keys()) == ORDER
    native_reads.clear()
    assert dict(folder.items()) == dict(flatten(TREE))
    assert list(folder.values()) == [folder.get(path) for path in ORDER]
    assert native_reads == [ORDER.index(path) for path in ORDER]  # those of `get` alone
    assert ("A.txt", TREE["A.txt"]) in folder.items()
    assert b"a list" in folder.values()
    assert len(folder.items()) == len(folder.values()) == len(ORDER)
    assert "images" not in folder
    assert folder.get("images", b"?") == b"?"


def test_packs_are_equal_to_themselves_only(folder, packed_path):
    assert folder == folder  # noqa: PLR0124
    assert folder != ingot.PackedFolder(packed_path)
    assert folder != dict(folder)
    assert len({folder, ingot.PackedFolder(packed_path)}) == 2


def test_listings_say_what_is_in_a_folder(folder):
    assert folder.list("images") == ["1.png", "10.png", "2.png", "labels"]
    assert folder.list("images", folders=False) == ["1.png", "10.png", "2.png"]
    assert folder.list("images", files=False) == ["labels"]
    assert folder.list("images", files=False, folders=False) == []
    below = ["1.png", "10.png", "2.png", "labels", "labels/1.txt"]
    assert folder.list(folder / "images", recursive=True) == below
    assert folder.list(recursive=True, folders=False) == ORDER
    every_folder = ["emptydir", "images", "images/labels", "sub", "sub/deep", "sub/deep/er"]
    assert folder.list(recursive=True, files=False) == every_folder
    assert folder.list("emptydir") == []


def in_any_order(walked):
    return sorted((path, sorted(folders), sorted(files)) for path, folders, files in walked)


def test_walk_is_that_of_the_folder_that_was_packed(folder, source):
    for top in ("", "sub", "images", "emptydir", "sub/deep"):
        real = [(os.path.relpath(path, source), *rest) for path, *rest in os.walk(source / top)]
        expected = [("" if path == "." else path, *rest) for path, *rest in real]
        assert in_any_order(folder.walk(top)) == in_any_order(expected)
    assert [path for path, _, _ in folder.walk("./sub/")] == ["sub", "sub/deep", "sub/deep/er"]


def test_walk_leaves_out_folders_that_are_removed_from_the_list(folder):
    seen = []
    for path, folders, _ in folder.walk():
        seen.append(path)
        folders[:] = [name for name in folders if name != "deep"] + ["unheard of"]
    assert seen == ["", "emptydir", "images", "images/labels", "sub"]


def test_files_open_as_files(folder):
    with folder.open("b.txt") as stream:
        assert isinstance(stream, io.BufferedReader)
        assert stream.readable()
        assert stream.seekable()
        assert not stream.writable()
        assert stream.read(2) == b"by"
        assert stream.seek(-1, io.SEEK_END) == 6
        assert stream.read() == b"\xff"
        assert stream.seek(0) == 0
        assert stream.readline() == TREE["b.txt"]
        with pytest.raises(io.UnsupportedOperation):
            stream.write(b"x")
    with folder.open("images.txt", "r") as stream:
        assert stream.read() == "a list"
    with folder.open("b.txt", "rt", "latin-1") as stream:
        assert stream.read() == "bytes \xff"
    with pytest.raises(UnicodeDecodeError), folder.open("b.txt", "r") as stream:
        stream.read()
    with folder.open("b.txt", "r", errors="replace") as stream:
        assert stream.read() == "bytes \ufffd"


def test_text_is_utf8_whatever_the_locale(tmp_path):
    build(tmp_path / "source", {"t": "\u6f22\r\n\u5b57\n".encode()})
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    code = "import sys, ingot; print(ascii(ingot.PackedFolder(sys.argv[1]).open('t', 'r').read()))"
    outcome = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code, str(tmp_path / "x.ingot")],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
    )
    assert outcome.stdout == "'\\u6f22\\n\\u5b57\\n'\n"
    with ingot.PackedFolder(tmp_path / "x.ingot").open("t", "r", newline="") as stream:
        assert stream.read() == "\u6f22\r\n\u5b57\n"


@pytest.mark.parametrize("mode", ["w", "wb", "a", "r+", "rb+", "x", "", "br", "U"])
def test_packs_are_read_only(folder, mode):
    with pytest.raises(ValueError, match="a pack is read-only"):
        folder.open("A.txt", mode)
    with pytest.raises(ValueError, match="a pack is read-only"):
        (folder / "A.txt").open(mode)


def test_bytes_have_no_encoding(folder):
    with pytest.raises(ValueError, match="bytes have no encoding"):
        folder.open("A.txt", "rb", "utf-8")


def test_a_closed_pack_reads_nothing(packed_path):
    with ingot.PackedFolder(packed_path) as folder:
        assert repr(folder) == f"<ingot.PackedFolder {str(packed_path)!r}, {len(ORDER)} files>"
    assert repr(folder) == f"<ingot.PackedFolder {str(packed_path)!r}, closed>"
    folder.close()
    for call in (
        lambda: folder.read_one("A.txt"),
        lambda: folder.read(["A.txt"]),
        lambda: folder["A.txt"],
        lambda: folder.open("A.txt"),
        lambda: folder.size("A.txt"),
        folder.verify,
    ):
        with pytest.raises(ingot.ClosedError):
            call()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pack_pickles_to_its_path(folder, protocol):
    pickled = pickle.dumps(folder, protocol)
    assert len(pickled) < 1000
    again = pickle.loads(pickled)  # noqa: S301
    assert again.reader.path == folder.reader.path
    assert dict(again) == dict(folder)
    path = pickle.loads(pickle.dumps(folder / "images", protocol))  # noqa: S301
    assert path == folder / "images"
    assert (path / "1.png").read_bytes() == b"one"
    assert list(copy.copy(folder)) == list(copy.deepcopy(folder)) == ORDER


def test_a_pack_that_was_replaced_since_it_was_pickled_is_refused(tmp_path):
    build(tmp_path / "source", {"a": b"a"})
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    pickled = pickle.dumps(ingot.PackedFolder(tmp_path / "x.ingot"))
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot", overwrite=True)
    with pytest.raises(ingot.FormatError, match="was replaced"):
        pickle.loads(pickled)  # noqa: S301


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


PATTERNS = ["*", "*.txt", "*/*", "*/", "**/*", "**/", "**/*.txt", "**/deep/**/*", "**/**/x*"]
PATTERNS += ["images/**/*.png", "[!a-z]*", "?.txt", "1*.png", "./A.txt", "deep/er/", "A.txt/"]
PATTERNS += ["sub/**/er/*", "**/d*/**/*", ".*", "[", "nope", "nope/*", "*.TXT", "**/*/*", "i*/l*/*"]
PATTERNS += ["**/.hidden", "A.txt/*", "**/*/", "*.p?g", "images//*", "[[]a]"]


@pytest.mark.parametrize("top", ["", "images", "sub", "sub/deep", "emptydir", "A.txt", "nope"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_they_match_for_pathlib(folder, source, top, pattern):
    real = source / top
    expected = {path.relative_to(real) for path in real.glob(pattern)}
    found = list((folder / top).glob(pattern))
    assert {PurePosixPath(str(path)).relative_to(top) for path in found} == expected
    assert len(found) == len(set(found)) == len(expected)
    assert [str(folder / top / path) for path in folder.glob(pattern, top)] == [*map(str, found)]
    deep = {path.relative_to(real) for path in real.rglob(pattern)}
    found = list((folder / top).rglob(pattern))
    assert {PurePosixPath(str(path)).relative_to(top) for path in found} == deep


def test_two_stars_at_the_end_match_all_that_is_below(folder):
    below = ["sub", "sub/.hidden", "sub/deep", "sub/deep/er", "sub/deep/er/x.tar.gz"]
    assert list(folder.glob("sub/**")) == [*below, "sub/deep/noext"]
    assert list(folder.glob("**", "emptydir")) == [""]
    assert list(folder.glob("**")) == ["", *folder.list(recursive=True)]
    assert list(folder.glob("A.txt/**")) == []


@pytest.mark.timeout(20)
def test_patterns_take_no_longer_for_more_stars(tmp_path):
    folder = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", nested(256)))
    assert list(folder.glob("**/d/" * 60 + "nope")) == []
    assert len(list(folder.glob("**/d/**/d/**/f"))) == 1


@pytest.mark.parametrize("pattern", ["", ".", "./"])
def test_a_pattern_has_a_part(folder, pattern):
    with pytest.raises(ValueError, match="is not a pattern"):
        (folder / "images").glob(pattern)


def test_a_pattern_is_relative(folder):
    with pytest.raises(NotImplementedError, match="is not relative"):
        folder.glob("/A.txt")
    with pytest.raises(NotImplementedError, match="is not relative"):
        folder.path().rglob("/A.txt")
    assert [str(path) for path in (folder / "sub").rglob("")] == ["sub", "sub/deep", "sub/deep/er"]


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
    with pytest.raises(ValueError, match="is not of this pack"):
        folder.read_one(other / "A.txt")
    assert again.read_one(folder / "A.txt") == TREE["A.txt"]
    assert repr(folder / "A.txt") == f"<ingot.PackedPath 'A.txt' of {str(packed_path)!r}>"


def test_a_path_is_a_resource_but_no_path_of_the_system(folder):
    assert isinstance(folder / "A.txt", importlib.resources.abc.Traversable)
    with pytest.raises(TypeError):
        os.fspath(folder / "A.txt")


def test_errors_of_paths_are_those_of_pathlib(folder):
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


@pytest.mark.parametrize("path", [b"A.txt", 3, None])
def test_what_is_no_path_into_a_pack_is_named(packed_path, path):
    with ingot.PackedFolder(packed_path) as folder:
        for call in (folder.read_one, folder.exists, folder.list, folder.__getitem__):
            with pytest.raises(TypeError, match=f"a path is a str .* not {type(path).__name__}$"):
                call(path)


def test_a_file_that_is_no_pack_is_refused(tmp_path, make):
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
    with pytest.raises(ingot.FormatError, match="a pack is one file, not 2"):
        ingot.PackedFolder(tmp_path / "packs" / "*.ingot")


def test_a_pack_of_a_later_version_is_told_from_a_damaged_one(tmp_path):
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
def test_what_is_no_tree_is_refused(tmp_path, record):
    with pytest.raises(ingot.FormatError, match=r"x\.ingot: .*(tree|version)"):
        ingot.PackedFolder(write_pack(tmp_path / "x.ingot", record))


@pytest.mark.parametrize("entry", [-1, 2, 10**30, 0.0, 1.5, True, None, "0", [0], [], -(2**63)])
def test_an_entry_that_is_no_record_of_the_file_is_refused(tmp_path, entry):
    for number, tree in enumerate(({"a": entry}, {"d": {"b": 0, "a": entry}})):
        with pytest.raises(ingot.FormatError, match="'a' in the tree of this pack leads to"):
            ingot.PackedFolder(write_pack(tmp_path / f"{number}.ingot", tree))


BAD_NAMES = ["", ".", "..", "/", "a/b", "/a", "a/", "../a", "..//", "\0", "a\0", "a\0/..", "//"]


@pytest.mark.parametrize("entry", [0, {}, {"inside": 0}], ids=["file", "empty", "folder"])
@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path, name, entry):
    for number, tree in enumerate(({name: entry}, {"d": {"ok": 1, name: entry}})):
        with pytest.raises(ingot.FormatError, match="is not the name of a file"):
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


@pytest.mark.parametrize("name", ["x" * 256, "\u6f22" * 86, "\ud800", "a\udfff"])
def test_nothing_is_unpacked_if_a_name_cannot_be_one(tmp_path, name):
    tree = {"a": 0, "b": {"c": {name: 1}}}
    folder = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", tree))
    assert folder.read_one(f"b/c/{name}") == b"second"
    with pytest.raises(ingot.FormatError, match="nothing was unpacked"):
        folder.unpack(tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_target_that_is_not_empty_is_left_alone(tmp_path, folder):
    build(tmp_path / "target", {"mine": b"mine"})
    with pytest.raises(FileExistsError, match="overwrite=True"):
        folder.unpack(tmp_path / "target")
    assert read_back(tmp_path / "target") == {"mine": b"mine"}
    (tmp_path / "file").write_bytes(b"mine")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError):
            folder.unpack(tmp_path / "file", overwrite=overwrite)


def test_targets_are_made_with_what_is_above_them(tmp_path, folder):
    folder.unpack(tmp_path / "not" / "there" / "yet")
    assert read_back(tmp_path / "not" / "there" / "yet") == TREE
    (tmp_path / "empty").mkdir()
    folder.unpack(tmp_path / "empty")
    assert read_back(tmp_path / "empty") == TREE


def test_overwriting_replaces_files_and_keeps_others(tmp_path, folder):
    target = tmp_path / "target"
    build(target, {"A.txt": b"old", "mine": b"mine", "images": {"1.png": b"old", "my.png": b"my"}})
    (target / "A.txt").chmod(0o444)
    folder.unpack(target, overwrite=True)
    images = {**TREE["images"], "my.png": b"my"}
    assert read_back(target) == {**TREE, "mine": b"mine", "images": images}
    assert (target / "A.txt").stat().st_mode & 0o200


def test_overwriting_does_not_replace_folders_by_files(tmp_path, folder):
    build(tmp_path / "target", {"A.txt": {"mine": b"mine"}})
    with pytest.raises(IsADirectoryError) as caught:
        folder.unpack(tmp_path / "target", overwrite=True)
    assert caught.value.__notes__ == [f"while 'A.txt' was unpacked into {tmp_path / 'target'}"]
    assert read_back(tmp_path / "target")["A.txt"] == {"mine": b"mine"}
    build(tmp_path / "other", {"images": b"mine"})
    with pytest.raises(NotADirectoryError, match=r"is in the way: .*/other/images"):
        folder.unpack(tmp_path / "other", overwrite=True)


@pytest.mark.parametrize("leads_to", ["outside", "outside/kept", "nowhere", "target"])
def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path, folder, leads_to):
    build(tmp_path / "outside", {"kept": b"kept"})
    build(tmp_path / "target", {"sub": {}})
    (tmp_path / "target" / "sub" / "deep").symlink_to(tmp_path / leads_to)
    with pytest.raises(NotADirectoryError, match=r"is in the way: .*/target/sub/deep"):
        folder.unpack(tmp_path / "target", overwrite=True)
    assert read_back(tmp_path / "outside") == {"kept": b"kept"}
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("leads_to", ["outside/kept", "outside", "nowhere"])
def test_a_link_in_the_place_of_a_file_is_replaced(tmp_path, folder, leads_to):
    build(tmp_path / "outside", {"kept": b"kept"})
    build(tmp_path / "target", {"images": {}})
    for path in ("A.txt", "images/1.png"):
        (tmp_path / "target" / path).symlink_to(tmp_path / leads_to)
    folder.unpack(tmp_path / "target", overwrite=True)
    assert read_back(tmp_path / "outside") == {"kept": b"kept"}
    assert read_back(tmp_path / "target") == TREE
    assert not (tmp_path / "target" / "A.txt").is_symlink()
    assert not (tmp_path / "nowhere").exists()


def test_a_link_that_is_swapped_in_meanwhile_leads_nowhere(tmp_path):
    files = {f"f{k}": 0 for k in range(20)}
    pack = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", {"d": {"e": files}, "g": files}))
    build(tmp_path / "outside", {})
    target, spare = tmp_path / "target", tmp_path / "spare"
    over = threading.Event()

    def swap():
        while not over.is_set():
            for place in (target / "g", target / "d" / "e"):
                with suppress(OSError):
                    place.rename(spare)
                    place.symlink_to(tmp_path / "outside")
                    place.unlink()
                shutil.rmtree(spare, ignore_errors=True)

    swapper = threading.Thread(target=swap)
    swapper.start()
    refused = 0
    try:
        for _ in range(300):
            try:
                pack.unpack(target, overwrite=True)
            except OSError:
                refused += 1
    finally:
        over.set()
        swapper.join()
    assert read_back(tmp_path / "outside") == {}
    assert refused > 0


def test_a_target_that_may_not_be_written_to_is_an_error(tmp_path, folder):
    (tmp_path / "target").mkdir(mode=0o555)
    with without_privileges(), pytest.raises(PermissionError):
        folder.unpack(tmp_path / "target")
    assert read_back(tmp_path / "target") == {}


def test_no_part_of_a_file_is_left_if_writing_fails(tmp_path):
    path = write_pack(tmp_path / "x.ingot", {"a": 0, "b": 1}, files=(b"a", b"b" * 100_000))
    folder = ingot.PackedFolder(path)
    with no_file_larger_than(50_000), pytest.raises(OSError, match="File too large") as caught:
        folder.unpack(tmp_path / "target")
    assert caught.value.__notes__ == [f"while 'b' was unpacked into {tmp_path / 'target'}"]
    assert read_back(tmp_path / "target") == {"a": b"a"}


def test_descriptors_are_closed(tmp_path, folder, packed_path):
    def count():
        gc.collect()  # readers that other tests left open
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before = count()
    folder.unpack(tmp_path / "target")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sub").symlink_to(tmp_path)
    with pytest.raises(NotADirectoryError):
        folder.unpack(tmp_path / "other", overwrite=True)
    for _ in range(5):
        ingot.PackedFolder(packed_path).close()
        with pytest.raises(ingot.FormatError):
            ingot.PackedFolder(write_pack(tmp_path / "x.ingot", b"?"))
        (tmp_path / "x.ingot").unlink()
    assert count() <= before


def test_a_folder_is_no_pack(tmp_path):
    with pytest.raises(IsADirectoryError, match="a pack is a file"):
        ingot.PackedFolder(tmp_path)


def test_two_names_that_are_one_on_a_disk_are_refused(tmp_path):
    path = write_pack(tmp_path / "x.ingot", {"\xe9": 0, "\udcc3\udca9": 0})
    with pytest.raises(ingot.FormatError, match="one name on a disk"):
        ingot.PackedFolder(path)
