"""What programs that were written for Bagz rely on, held against the real package."""

import subprocess
import sys

import bagz as real
import numpy as np
import pytest

from ingot.compat import bagz

BOTH = pytest.mark.parametrize("package", [real, bagz], ids=["real", "here"])
NAMES = {real: "import bagz", bagz: "from ingot.compat import bagz"}
RECORDS = [b"%d" % k for k in range(10)]


@pytest.fixture
def path(tmp_path):
    with real.Writer(tmp_path / "x.bag") as writer:
        for record in RECORDS:
            writer.write(record)
    return tmp_path / "x.bag"


@BOTH
def test_a_subclass_with_its_own_items_is_read_by_those_of_the_files(package, path):
    class Numbers(package.Reader):
        def __getitem__(self, index):
            return int(super().__getitem__(index))

        def __len__(self):
            return 3

    reader = Numbers(path)
    assert reader[7] == 7
    assert len(reader) == 3
    assert list(reader) == RECORDS
    assert list(reversed(reader)) == RECORDS[::-1]
    assert type(reversed(reader)) is package.Reader
    assert reader.read() == reader.read_range(0, 10) == RECORDS
    assert reader.read_indices([9, 1]) == list(reader.read_indices_iter([9, 1])) == [b"9", b"1"]
    assert reader.read_indices(slice(2, 4)) == [b"2", b"3"]
    assert (reader.index(b"4"), reader.count(b"4"), b"4" in reader) == (4, 1, True)


@BOTH
def test_a_slice_of_a_subclass_with_a_constructor_is_a_plain_reader(package, path):
    class Named(package.Reader):
        def __init__(self, path, name):
            super().__init__(path)
            self.name = name

    part = Named(path, "x")[2:4]
    assert type(part) is package.Reader
    assert part.read() == [b"2", b"3"]


@BOTH
@pytest.mark.parametrize("kind", [list, tuple, np.array])
@pytest.mark.parametrize("part", [slice(None), slice(None, None, -1)])
def test_an_index_that_is_there_twice_gives_one_object(package, path, kind, part):
    reader = package.Reader(path)[part]
    found = reader.read_indices(kind([3, 1, 3, 3]))
    assert found == [reader[k] for k in (3, 1, 3, 3)]
    assert len({id(record) for record in found}) == 2


@BOTH
@pytest.mark.parametrize("index", [2**63, 2**64, 2**70, -(2**63) - 1])
def test_an_iterator_rejects_integers_with_too_many_bits(package, path, index):
    stream = package.Reader(path).read_indices_iter(k for k in (4, index))
    assert next(stream) == b"4"
    with pytest.raises(OverflowError):
        next(stream)


@BOTH
@pytest.mark.parametrize("level", [3, np.int64(3), np.int8(3), np.uint16(3)])
def test_any_integer_is_a_level(package, tmp_path, level):
    compression = package.CompressionZstd(level=level)
    assert (compression.level, type(compression.level)) == (3, int)
    options = package.Writer.Options(compression=compression)
    with package.Writer(tmp_path / "z.bag", options) as writer:
        writer.write(b"x" * 100)
    assert (tmp_path / "z.bag").stat().st_size < 100
    with pytest.raises(TypeError):
        package.CompressionZstd(level=3.0)


ENDS = {
    "end of the program": "",
    "exception": "raise KeyError",
    "exit": "import sys; sys.exit(3)",
    "exception in with": "with writer: raise KeyError",
    "del": "del writer",
    "a cycle": "writer_in = [writer]; writer_in.append(writer_in); del writer",
}


@pytest.mark.parametrize("placement", ["TAIL", "SEPARATE"])
@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_ends_leaves_the_same_files(tmp_path, end, placement):
    left = {}
    for package, statement in NAMES.items():
        folder = tmp_path / package.__name__
        folder.mkdir()
        lines = [
            statement,
            f"options = bagz.Writer.Options(bagz.LimitsPlacement.{placement})",
            "writer = bagz.Writer('x.bag', options)",
            "for k in range(1000): writer.write(b'record %d' % k)",
            ENDS[end],
        ]
        code = "\n".join(lines)
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=False, capture_output=True)
        left[package] = {one.name: one.read_bytes() for one in folder.iterdir()}
    assert left[bagz] == left[real]
    assert len(left[real]["x.bag"]) >= 8890


def test_a_writer_that_is_never_closed_is_reported_at_exit(tmp_path):
    code = "from ingot.compat import bagz; w = bagz.Writer('x.bag'); w.write(b'kept')"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "x.bag: the writer was never closed; its 1 record is there" in ended.stderr
    assert "limits.x.bag" in ended.stderr
