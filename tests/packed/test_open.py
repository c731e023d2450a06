import copy
import io
import os
import pickle
import subprocess
import sys

import pytest

import ingot
from tests.packed.packs import (
    ORDER,
    TREE,
    build,
)


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
    with pytest.raises(ValueError, match="takes no encoding"):
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


def test_a_pack_that_was_replaced_since_it_was_pickled_is_rejected(tmp_path):
    build(tmp_path / "source", {"a": b"a"})
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    pickled = pickle.dumps(ingot.PackedFolder(tmp_path / "x.ingot"))
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot", overwrite=True)
    with pytest.raises(ingot.FormatError, match="was replaced"):
        pickle.loads(pickled)  # noqa: S301
