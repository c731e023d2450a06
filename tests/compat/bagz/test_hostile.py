"""Bags that lie, are cut short or explode."""

import random
import resource
import struct
from contextlib import suppress

import pytest

from ingot.compat import bagz
from ingot.errors import IngotError
from ingot.formats.bag import BagFile, BagReader
from tests.support import DATA

GOLDEN = DATA / "bagz"
SEPARATE = bagz.Reader.Options(limits_placement=bagz.LimitsPlacement.SEPARATE)


def words(*limits):
    return struct.pack(f"<{len(limits)}Q", *limits)


def read_all(reader):
    """Read every record one by one and all together; return those that could be read."""
    good = []
    for k in range(len(reader)):
        with suppress(IngotError):
            good.append((k, reader[k]))
    try:
        assert [(k, record) for k, record in enumerate(reader.read())] == good
    except IngotError:
        assert len(good) < len(reader)
    return good


@pytest.mark.parametrize(
    "content",
    [
        b"abc",
        b"abc" + words(2**64 - 1),
        b"abc" + words(2**63),
        b"abc" + words(4),
        b"abc" + words(12),
        words(8),
    ],
)
def test_invalid_tables_are_rejected(tmp_path, content):
    (tmp_path / "x.bag").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.bag: offset .* table begins"):
        bagz.Reader(tmp_path / "x.bag")


def test_limits_beyond_the_records_are_rejected(tmp_path):
    (tmp_path / "x.bag").write_bytes(b"abcdef")
    limits = tmp_path / "limits.x.bag"
    for table in (words(7), words(3, 2**64 - 1), words(2**63)):
        limits.write_bytes(table)
        with pytest.raises(ValueError, match=r"limits\.x\.bag: record .*its limits are"):
            bagz.Reader(tmp_path / "x.bag", SEPARATE)
    limits.write_bytes(words(2, 2**62, 4, 4) + b"torn")
    reader = bagz.Reader(tmp_path / "x.bag", SEPARATE)
    assert len(reader) == 4
    assert read_all(reader) == [(0, b"ab"), (3, b"")]


@pytest.mark.parametrize("name", ["plain.bag", "comp.bagz", "readme.bag", "all_empty.bag"])
def test_every_cut_is_rejected_or_reads_as_it_says(tmp_path, name):
    content = (GOLDEN / name).read_bytes()
    path = tmp_path / name
    rng = random.Random(1)
    lengths = range(len(content)) if len(content) < 100 else rng.sample(range(len(content)), 150)
    for length in lengths:
        path.write_bytes(content[:length])
        try:
            reader = bagz.Reader(path)
        except ValueError:
            continue
        read_all(reader)


def test_flipped_bytes_never_do_harm(tmp_path):
    content = (GOLDEN / "comp.bagz").read_bytes()
    rng = random.Random(2)
    path = tmp_path / "x.bagz"
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            reader = bagz.Reader(path)
        except ValueError:
            continue
        if len(reader) <= 1000:
            read_all(reader)


def frame(content_size):
    """Return a zstd frame that tells of many bytes and has few."""
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", content_size) + b"\x03\x00\x00a"


def test_a_frame_that_lies_about_its_length_costs_no_memory(tmp_path):
    path = tmp_path / "x.bagz"
    for size in (2**40, 2**63, 2**64 - 3):
        record = frame(size)
        path.write_bytes(record + words(len(record)))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for read in (lambda r: r[0], lambda r: r.read(), list, lambda r: r.count(b"a")):
            with pytest.raises(ValueError, match=r"x\.bagz: record 0: offset 0: "):
                read(bagz.Reader(path))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_invalid_frames_are_rejected(tmp_path):
    path = tmp_path / "x.bagz"
    for record in (
        b"no frame at all",
        b"\x28\xb5\x2f\xfd",
        b"\x28",
        b"\x50\x2a\x4d\x18\x00\x00\x00\x00",
    ):
        path.write_bytes(record + words(len(record)))
        reader = bagz.Reader(path)
        good = read_all(reader)
        assert good in ([], [(0, b"")])


def test_a_bag_that_is_cut_while_it_is_read_raises(tmp_path):
    path = tmp_path / "x.bag"
    with bagz.Writer(path) as writer:
        for k in range(3000):
            writer.write(b"%d" % k * 1000)
    reader = bagz.Reader(path)
    assert reader[2999] == b"2999" * 1000
    with path.open("r+b") as file:
        file.truncate(5000)
    assert reader[0] == b"0" * 1000
    with pytest.raises((IngotError, OSError)):
        reader.read_range(2000, 500)


def test_invalid_dictionaries_are_rejected():
    magic = b"\x37\xa4\x30\xec" + b"\xff" * 60
    with pytest.raises(ValueError, match="dictionary"):
        BagReader([BagFile(str(GOLDEN / "comp.bagz"), dictionary=magic)])
    with pytest.raises(ValueError, match="compression is"):
        BagReader([BagFile(str(GOLDEN / "comp.bagz"), compression="lz4")])
