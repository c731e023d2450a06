from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath

import pytest

import ingot
from tests.packed.packs import ORDER, TREE, build, flatten


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
def test_missing_paths_are_not_found(folder, path):
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


def test_files_and_folders_are_distinguished(folder):
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
        with pytest.raises(TypeError, match="expected several paths"):
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


@pytest.mark.parametrize("path", [b"A.txt", 3, None])
def test_invalid_paths_into_a_pack_are_named(packed_path, path):
    with ingot.PackedFolder(packed_path) as folder:
        for call in (folder.read_one, folder.exists, folder.list, folder.__getitem__):
            with pytest.raises(TypeError, match=f"must be a str .* got {type(path).__name__}$"):
                call(path)
