"""Files of other systems, opened like any other."""

import gc
import json
import os
import pickle
import random
import shutil
import zlib
from hashlib import sha256

import numpy as np
import pytest

import ingot
from ingot.compat.array_record.options import parse_writer_options
from ingot.formats.arrayrecord import ArrayRecordReader, ArrayRecordWriter
from ingot.formats.bag import BagWriter
from ingot.formats.ffrecord import FFRecordReader, FFRecordWriter
from tests.support import DATA

BAGZ = json.loads((DATA / "bagz" / "manifest.json").read_text())["files"]
BAGS = [
    name
    for name, said in BAGZ.items()
    if "records" in said and name not in {"dict.bagz", "forced_zstd.bag", "plain_ext.rec"}
]
RECORDS = [b"%d " % k * (k % 60) for k in range(700)]
OPTIONS = [
    "group_size:1,uncompressed",
    "group_size:1,zstd:3",
    "group_size:64,zstd:3",
    "group_size:50,brotli:5",
    "group_size:50,snappy",
    "group_size:1000,zstd:-3,window_log:24",
]


@pytest.fixture(params=OPTIONS)
def array_record(request, tmp_path):
    path = tmp_path / "x.array_record"
    with ArrayRecordWriter(path, **parse_writer_options(request.param)) as writer:
        assert not path.exists()
        writer.extend(RECORDS)
    return path


@pytest.mark.parametrize("way", ["", "mmap", "uring", "pread"])
def test_array_records_are_read_in_every_way(array_record, way, monkeypatch):
    monkeypatch.setenv("INGOT_IO", way)
    reader = ingot.open(array_record)
    assert len(reader) == len(RECORDS)
    rng = random.Random(0)
    for size in (1, 2, 64, 1000):
        indices = rng.choices(range(-len(RECORDS), len(RECORDS)), k=size)
        expected = [RECORDS[k] for k in indices]
        assert reader[indices] == expected
        assert [bytes(one) for one in reader.read(indices)] == expected
        assert list(reader.iter(indices)) == expected
    assert [reader[k] for k in range(-5, 5)] == RECORDS[-5:] + RECORDS[:5]
    assert list(reader) == RECORDS
    assert list(reader[650:20:-9]) == RECORDS[650:20:-9]
    assert reader.lengths().tolist() == [len(record) for record in RECORDS]
    assert reader.verify().ok
    assert pickle.loads(pickle.dumps(reader))[3] == RECORDS[3]  # noqa: S301


def test_an_array_record_is_known_by_its_first_bytes(array_record, tmp_path):
    renamed = shutil.copy(array_record, tmp_path / "other.bin")
    assert ingot.open(renamed)[-1] == RECORDS[-1]


def test_array_records_and_ingot_files_are_one_sequence(array_record, make):
    own = make([b"first"])
    reader = ingot.open([own, array_record])
    assert list(reader) == [b"first", *RECORDS]
    assert reader[[700, 0]] == [RECORDS[699], b"first"]


def test_a_folder_of_array_records_is_a_data_set(array_record, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    for k in range(3):
        shutil.copy(array_record, folder / f"part-{k}.array_record")
    assert list(ingot.open(folder)) == RECORDS * 3
    assert list(ingot.open(folder / "part-*.array_record")) == RECORDS * 3


def test_a_damaged_group_costs_its_own_records(tmp_path):
    path = tmp_path / "x.array_record"
    with ArrayRecordWriter(path, group_size=10) as writer:
        writer.extend([bytes([k]) * 3000 for k in range(100)])
    content = bytearray(path.read_bytes())
    content[110] ^= 1
    path.write_bytes(content)
    reader = ingot.open(path)
    found = reader.verify()
    assert [(one.record, one.records) for one in found.damaged] == [(0, 10)]
    with pytest.raises(ingot.errors.CorruptFileError, match=r"record 3: offset 64: chunk "):
        reader[3]
    assert reader[10] == bytes([10]) * 3000
    assert ArrayRecordReader(path).group_size(0) == 10


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.array_record"
    with ArrayRecordWriter(path) as writer:
        writer.append(b"old")
    with pytest.raises(TypeError), ArrayRecordWriter(path) as writer:
        writer.extend([b"new", "text"])
    assert list(ingot.open(path)) == [b"old"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.array_record"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"group_size": 0}, "group_size is 0"),
        ({"level": 23}, "level is 23, not -131072 to 22"),
        ({"compression": "brotli", "level": 12}, "level is 12, not 0 to 11"),
        ({"compression": "brotli", "window_log": 31}, "window_log is 31, not 10 to 30"),
        ({"compression": "lzma"}, "compression must be"),
        ({"compression": None, "window_log": 20}, "does not take window_log"),
        ({"transpose": True, "transpose_bucket_size": 0}, "transpose_bucket_size is 0"),
    ],
)
def test_invalid_arguments_are_rejected(tmp_path, arguments, words):
    with pytest.raises(ValueError, match=words):
        ArrayRecordWriter(tmp_path / "x.array_record", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", BAGS)
@pytest.mark.parametrize("way", ["", "uring", "pread"])
def test_bags_are_read(name, way, monkeypatch):
    monkeypatch.setenv("INGOT_IO", way)
    reader = ingot.open(DATA / "bagz" / name)
    expected = [tuple(one) for one in BAGZ[name]["records"]]
    assert [(len(one), sha256(one).hexdigest()) for one in reader] == expected
    order = list(range(len(reader)))[::-1]
    assert [(len(one), sha256(one).hexdigest()) for one in reader[order]] == expected[::-1]
    assert reader.verify().ok


def test_a_column_of_granular_is_a_sequence():
    reader = ingot.open(DATA / "granular" / "v3_dataset50" / "foo.bag")
    assert [int.from_bytes(one, "little") for one in reader] == list(range(50))


def test_a_data_set_of_granular_is_not_taken_for_shards():
    with pytest.raises(ingot.errors.FormatError, match="each of its files is a column"):
        ingot.Reader(DATA / "granular" / "v3_dataset50")


@pytest.mark.parametrize("make_writer", [ArrayRecordWriter, FFRecordWriter], ids=["ar", "ffr"])
def test_the_child_of_a_fork_leaves_the_file_to_its_parent(tmp_path, make_writer):
    is_ffr = make_writer is FFRecordWriter
    path = tmp_path / ("x.ffr" if is_ffr else "x.array_record")
    writer = FFRecordWriter(str(path), None, sync=False) if is_ffr else make_writer(path)
    for record in RECORDS:
        writer.append(record)
    child = os.fork()
    if child == 0:
        del writer
        gc.collect()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not path.exists()
    writer.append(b"one more")
    writer.close()
    assert list(ingot.open(path)) == [*RECORDS, b"one more"]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_writer_in_the_child_of_a_fork_is_rejected(tmp_path):
    writer = ArrayRecordWriter(tmp_path / "x.array_record")
    writer.extend(b"x" * 5000 for _ in range(1000))
    child = os.fork()
    if child == 0:
        try:
            writer.append(b"from the child")
        except ValueError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.close()
    assert len(ingot.open(tmp_path / "x.array_record")) == 1000


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_a_link_in_the_way_of_a_new_file_is_not_followed(tmp_path, link):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    for name in ("x.array_record", "x.ffr"):
        link(victim, tmp_path / f"{name}.part")
        path = tmp_path / name
        with pytest.raises(ingot.errors.FormatError, match="in the way of the new one"):
            ArrayRecordWriter(path) if "array" in name else FFRecordWriter(str(path), 1, sync=False)
        assert victim.read_bytes() == b"precious"


def test_a_bag_that_claims_more_than_it_can_hold_costs_no_memory(tmp_path):
    frame = b"\x28\xb5\x2f\xfd\xe0" + (1_500_000_000).to_bytes(8, "little") + b"\1\0\0"
    path = tmp_path / "x.bagz"
    path.write_bytes(frame + len(frame).to_bytes(8, "little"))
    reader = ingot.open(path)
    for read in (lambda: reader[0], lambda: reader[[0]], lambda: list(reader)):
        with pytest.raises(ingot.errors.CorruptFileError, match="cannot hold"):
            read()
    assert not reader.verify().ok


def test_a_verification_names_bags_as_unchecked(tmp_path):
    with BagWriter(tmp_path / "x.bag") as writer:
        writer.extend([b"one", b"two"])
    found = ingot.open(tmp_path / "x.bag").verify()
    assert found.ok
    assert found.unchecked == (str(tmp_path / "x.bag"),)


@pytest.mark.parametrize("n", [None, 2])
def test_ffrecord_files_are_written_in_a_with_block(tmp_path, monkeypatch, n):
    monkeypatch.chdir(tmp_path)
    with FFRecordWriter("x.ffr", n) as writer:
        assert [writer.append(b"a"), writer.append(b"bc")] == [0, 1]
    reader = FFRecordReader("x.ffr")
    assert list(reader) == list(ingot.open("x.ffr")) == [b"a", b"bc"]
    assert reader.checksums(0).tolist() == [zlib.crc32(one) for one in (b"a", b"bc")]
    assert (np.diff(reader.offsets(0)).tolist(), reader.is_intact(0)) == ([1], True)
    assert reader.legacy_files() == []


def test_an_exception_leaves_an_ffrecord_file_as_it_was(tmp_path):
    with FFRecordWriter(tmp_path / "x.ffr") as writer:
        writer.append(b"old")
    with pytest.raises(KeyError), FFRecordWriter(tmp_path / "x.ffr") as writer:  # noqa: PT012
        writer.append(b"new")
        raise KeyError
    assert list(ingot.open(tmp_path / "x.ffr")) == [b"old"]
    assert [path.name for path in tmp_path.iterdir()] == ["x.ffr"]
