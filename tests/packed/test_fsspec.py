import importlib.metadata
import io
import json
import os
import pickle
import subprocess
import sys

import fsspec
import pytest

import ingot
from ingot.fsspec import PackedFileSystem

FILES = {
    "a.csv": b"x,y\n1,2\n",
    "d/[1].bin": b"one",
    "d/2.bin": b"two",
    "d/e/3.bin": b"three",
    "z.txt": b"caf\xc3\xa9\n",
}


@pytest.fixture(scope="module")
def packed_path(tmp_path_factory):
    base = tmp_path_factory.mktemp("fsspec")
    for path, content in FILES.items():
        (base / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        (base / "source" / path).write_bytes(content)
    (base / "source" / "empty").mkdir()
    ingot.pack(base / "source", base / "x.ingot", compression=None)
    return base / "x.ingot"


@pytest.fixture(scope="module")
def system(packed_path):
    return fsspec.filesystem("ingotpack", source=packed_path)


@pytest.fixture(scope="module")
def local(packed_path):
    return fsspec.filesystem(
        "dir", path=str(packed_path.parent / "source"), fs=fsspec.filesystem("file")
    )


@pytest.fixture
def native_reads(monkeypatch):
    """Return a list that grows by the rows of each call that reads records."""
    calls = []
    original = ingot.Reader.__getitem__

    def counted(self, rows):
        calls.append(rows)
        return original(self, rows)

    monkeypatch.setattr(ingot.Reader, "__getitem__", counted)
    return calls


def test_the_protocol_is_registered_with_the_package(system):
    (entry,) = importlib.metadata.entry_points(group="fsspec.specs", name="ingotpack")
    assert entry.load() is PackedFileSystem
    assert type(system) is PackedFileSystem
    assert isinstance(system.folder, ingot.PackedFolder)


def test_listings_match_the_folder(system, local):
    for path in ("", "d", "d/e", "empty", "a.csv"):
        assert sorted(system.ls(path, detail=False)) == sorted(local.ls(path, detail=False))
        assert system.ls(f"ingotpack://{path}") == system.ls(f"/{path}") == system.ls(path)
        listed = {info["name"]: (info["size"], info["type"]) for info in system.ls(path)}
        for name, found in listed.items():
            real = local.info(name)
            assert found == (real["size"] if real["type"] == "file" else 0, real["type"])
            assert system.info(name) == {"name": name, "size": found[0], "type": found[1]}
    for path in ("nope", "a.csv/x", ".."):
        with pytest.raises(FileNotFoundError):
            system.ls(path)
        with pytest.raises(FileNotFoundError):
            system.info(path)


def test_existing_paths_exist(system):
    for path in [*FILES, "", "d", "d/e", "empty", "/d/", "ingotpack://d/2.bin"]:
        assert system.exists(path)
    assert not system.exists("nope")
    assert system.isdir("d")
    assert not system.isfile("d")
    assert system.isfile("d/2.bin")
    assert not system.isdir("d/2.bin")
    assert system.size("d/e/3.bin") == 5
    assert system.sizes(list(FILES)) == [len(content) for content in FILES.values()]


def test_finding_and_matching_match_the_folder(system, local):
    assert system.find("") == sorted(FILES) == local.find("")
    assert system.find("d", withdirs=True) == local.find("d", withdirs=True)
    assert system.find("", maxdepth=1) == local.find("", maxdepth=1)
    assert system.find("a.csv") == ["a.csv"]
    assert system.find("d", detail=True)["d/2.bin"]["size"] == 3
    for pattern in ("*", "d/*", "**/*.bin", "d/**", "[az]*", "nope*"):
        assert system.glob(pattern) == local.glob(pattern)
    assert system.glob("*/") == ["d", "empty"]
    walked = [(path, sorted(folders), sorted(files)) for path, folders, files in system.walk("")]
    assert walked == [
        ("", ["d", "empty"], ["a.csv", "z.txt"]),
        ("d", ["e"], ["2.bin", "[1].bin"]),
        ("d/e", [], ["3.bin"]),
        ("empty", [], []),
    ]
    assert system.du("") == sum(map(len, FILES.values()))


def test_many_files_are_one_native_read(system, native_reads):
    wanted = ["z.txt", "a.csv", "d/2.bin"]
    assert system.cat(wanted) == {path: FILES[path] for path in wanted}
    assert len(native_reads) == 1
    native_reads.clear()
    assert system.cat("", recursive=True) == FILES
    assert system.cat("d", recursive=True) == {
        path: content for path, content in FILES.items() if path.startswith("d/")
    }
    assert system.cat("*.csv") == {"a.csv": FILES["a.csv"]}
    assert len(native_reads) == 3
    assert system.cat(wanted, start=1, end=3) == {path: FILES[path][1:3] for path in wanted}


def test_one_file_is_its_content(system):
    assert system.cat("d/2.bin") == b"two"
    assert system.cat(["d/2.bin"]) == {"d/2.bin": b"two"}
    assert system.cat("a.csv", recursive=True) == {"a.csv": FILES["a.csv"]}
    assert system.cat_file("d/e/3.bin", 1, 4) == b"hre"
    assert system.cat_file("d/e/3.bin", -2) == b"ee"
    assert system.cat("d/[1].bin") == b"one"  # a file, though it looks like a pattern
    assert system.read_bytes("d/[1].bin") == b"one"
    assert system.cat_ranges(["a.csv", "z.txt"], 0, 2) == [b"x,", b"ca"]
    assert system.head("d/e/3.bin", 2) == b"th"
    assert system.tail("d/e/3.bin", 2) == b"ee"
    assert system.read_block("a.csv", 1, 4, b"\n") == b"1,2\n"


def test_errors_are_raised_left_out_or_returned(system, packed_path, tmp_path):
    with pytest.raises(FileNotFoundError):
        system.cat(["a.csv", "nope"])
    with pytest.raises(IsADirectoryError):
        system.cat("d")
    assert system.cat(["a.csv", "nope"], on_error="omit") == {"a.csv": FILES["a.csv"]}
    returned = system.cat(["a.csv", "nope"], on_error="return")
    assert returned["a.csv"] == FILES["a.csv"]
    assert isinstance(returned["nope"], FileNotFoundError)
    content = packed_path.read_bytes().replace(b"three", b"threx")
    (tmp_path / "x.ingot").write_bytes(content)
    damaged = PackedFileSystem(tmp_path / "x.ingot")
    with pytest.raises(ingot.CorruptFileError):
        damaged.cat("d", recursive=True)
    returned = damaged.cat("d", recursive=True, on_error="return")
    assert isinstance(returned.pop("d/e/3.bin"), ingot.CorruptFileError)
    assert returned == {"d/[1].bin": b"one", "d/2.bin": b"two"}


def test_files_open_as_files(system):
    with system.open("d/e/3.bin") as file:
        assert isinstance(file, io.BufferedReader)
        assert file.size == 5
        assert file.read(2) == b"th"
        file.seek(-1, io.SEEK_END)
        assert file.read() == b"e"
    with system.open("z.txt", "r", encoding="utf-8") as file:
        assert file.read() == "caf\xe9\n"
    with pytest.raises(FileNotFoundError):
        system.open("nope")
    with pytest.raises(IsADirectoryError):
        system.open("d")


@pytest.mark.parametrize("mode", ["wb", "ab", "r+b", "w", "xb"])
def test_a_pack_is_read_only(system, mode):
    with pytest.raises(OSError, match="a pack is read-only"):
        system.open("new", mode)


def test_a_url_names_a_file_in_a_pack(packed_path):
    with fsspec.open(f"ingotpack://d/2.bin::{packed_path}") as file:
        assert file.read() == b"two"
    with fsspec.open(f"ingotpack://d/e/3.bin::file://{packed_path}", "rt") as file:
        assert file.read() == "three"
    system, path = fsspec.url_to_fs(f"ingotpack://d::{packed_path}")
    assert path == "d"
    assert system.ls(path, detail=False) == ["d/2.bin", "d/[1].bin", "d/e"]
    opened = fsspec.open_files(f"ingotpack://d/*.bin::{packed_path}")
    assert [one.path for one in opened] == ["d/2.bin", "d/[1].bin"]
    with pytest.raises(ValueError, match="a pack must be a local file"):
        fsspec.open("ingotpack://a.csv::memory://x.ingot")


def test_a_file_system_pickles_and_is_described_by_json(system):
    again = pickle.loads(pickle.dumps(system))  # noqa: S301
    assert again.cat("", recursive=True) == FILES
    described = json.loads(PackedFileSystem(str(system.folder.reader.path)).to_json())
    assert described["protocol"] == "ingotpack"
    assert fsspec.AbstractFileSystem.from_json(json.dumps(described)).cat("d/2.bin") == b"two"


def test_a_pack_that_took_the_place_of_another_is_seen(tmp_path):
    for content in (b"old", b"new"):
        (tmp_path / "source").mkdir(exist_ok=True)
        (tmp_path / "source" / "a").write_bytes(content)
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot", overwrite=True)
        system = fsspec.filesystem("ingotpack", source=tmp_path / "x.ingot")
        assert system.cat("a") == content


def test_files_are_copied_out(system, tmp_path):
    system.get("d", str(tmp_path / "out"), recursive=True)
    copied = [os.path.relpath(path, tmp_path) for path in (tmp_path / "out").rglob("*.bin")]
    assert sorted(copied) == ["out/2.bin", "out/[1].bin", "out/e/3.bin"]
    assert (tmp_path / "out" / "e" / "3.bin").read_bytes() == b"three"


def test_a_mapper_reads_through_it(system):
    mapper = system.get_mapper("d")
    assert dict(mapper) == {"[1].bin": b"one", "2.bin": b"two", "e/3.bin": b"three"}


def test_a_pack_must_be_named():
    with pytest.raises(TypeError, match="the pack is missing"):
        fsspec.filesystem("ingotpack")


def test_without_fsspec_the_error_says_how_to_install_it():
    code = "import sys; sys.modules['fsspec'] = None\nimport ingot.fsspec"
    outcome = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 1
    assert "ingot.fsspec requires fsspec: pip install 'ingot-data[fsspec]'" in outcome.stderr
