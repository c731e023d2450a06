"""ArrayRecord's reader and writer, against golden files of the real package."""

import errno
import gzip
import hashlib
import json
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ingot
from ingot.compat.array_record import array_record_module
from ingot.compat.array_record.array_record_module import ArrayRecordReader, ArrayRecordWriter
from tests.support import DATA

GOLDEN = DATA / "arrayrecord"
MANIFEST = json.loads((GOLDEN / "manifest.json").read_text())
FILES = MANIFEST["files"]
EXACT = [
    name
    for name, file in FILES.items()
    if "transpose" not in name and "brotli" not in name and "snappy" not in name
]


def golden(name, tmp_path):
    """Return the path of a golden file, some of which are compressed."""
    path = GOLDEN / name
    if path.suffix != ".gz":
        return path
    plain = tmp_path / path.stem
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    return plain


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def samples(count, seed=0):
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(300)) + b"text" * rng.randrange(99) for _ in range(count)]


def write_all(writer, records):
    for record in records:
        writer.write(record)


def write(path, records, options=""):
    with ArrayRecordWriter(path, options) as writer:
        write_all(writer, records)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.array_record"


@pytest.mark.parametrize("name", FILES)
def test_golden_files_read_as_they_were_written(name, tmp_path):
    path = golden(name, tmp_path)
    expected = MANIFEST["record_sets"][FILES[name]["record_set"]]
    reader = ArrayRecordReader(path)
    assert reader.num_records() == expected["num_records"]
    assert reader.writer_options_string() == FILES[name]["writer_options_string"]
    records = reader.read_all()
    assert [len(record) for record in records] == expected["sizes"]
    assert [hashlib.sha256(record).hexdigest() for record in records] == expected["sha256"]
    assert [reader.read() for _ in records] == records
    assert list(ingot.open(path)) == records
    assert ingot.open(path).verify().ok


@pytest.mark.parametrize("name", EXACT)
def test_files_are_written_byte_for_byte_as_by_array_record(name, tmp_path, path):
    golden_path = golden(name, tmp_path)
    write(path, ArrayRecordReader(golden_path).read_all(), FILES[name]["writer_options"])
    assert path.read_bytes() == golden_path.read_bytes()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == FILES[name]["file_sha256"]


@pytest.mark.parametrize("name", sorted(set(FILES) - set(EXACT)))
def test_files_are_written_anew_with_the_same_records_and_options(name, tmp_path, path):
    golden_reader = ArrayRecordReader(golden(name, tmp_path))
    records = golden_reader.read_all()
    write(path, records, FILES[name]["writer_options"])
    reader = ArrayRecordReader(path)
    assert reader.read_all() == records
    assert reader.writer_options_string() == golden_reader.writer_options_string()


# What ArrayRecord's own tests ask for.


def test_readers_and_writers_open_and_close(path):
    writer = ArrayRecordWriter(str(path))
    assert writer.ok()
    assert writer.is_open()
    writer.close()
    assert not writer.ok()
    assert not writer.is_open()
    reader = ArrayRecordReader(str(path))
    assert reader.ok()
    assert reader.is_open()
    reader.close()
    assert not reader.ok()
    assert not reader.is_open()


@pytest.mark.parametrize("kind", [ArrayRecordReader, ArrayRecordWriter])
def test_invalid_options_are_rejected_at_once(kind, path):
    with pytest.raises(ValueError, match="Unknown option blah, valid options: "):
        kind(str(path), "blah")
    with pytest.raises(ValueError, match="Option max_parallelism is present more than once"):
        kind(str(path), "max_parallelism:1,max_parallelism:1")
    assert not path.exists()


def test_records_are_read_in_order(path):
    write(path, [b"abc", b"def", b"F\xc3\xb8\xc3\xb6\x97\xc3\xa5r"])
    reader = ArrayRecordReader(str(path), "readahead_buffer_size:0,max_parallelism:0")
    assert (reader.num_records(), reader.record_index()) == (3, 0)
    assert [reader.read() for _ in range(3)] == [b"abc", b"def", b"F\xc3\xb8\xc3\xb6\x97\xc3\xa5r"]
    for _ in range(2):
        with pytest.raises(IndexError, match="Out of range of num_records: 3"):
            reader.read()
    assert reader.ok()
    reader.seek(0)
    assert (reader.record_index(), reader.read(), reader.record_index()) == (0, b"abc", 1)


def test_arguments_of_other_names_are_ignored(path):
    ArrayRecordWriter(path=str(path), options="", file_options=None).close()
    reader = ArrayRecordReader(str(path), file_reader_buffer_size=2**10, file_options=None)
    assert reader.read_all() == []


def test_batches_are_read_in_the_order_of_their_indices(path):
    records = [b"abc", b"def", b"ghi", b"kkk", b"..."]
    write(path, records)
    reader = ArrayRecordReader(str(path))
    assert reader.read_all() == records
    order = [1, 3, 0, 3]
    for indices in (order, tuple(order), np.array(order), np.array(order, np.uint8)):
        assert reader.read(indices) == [records[k] for k in order]
    assert reader.read(range(2, 4)) == records[2:4]
    assert reader.read([True, np.int64(2)]) == records[1:3]
    assert reader.read([]) == []
    assert reader.record_index() == 0


@pytest.mark.parametrize(
    ("bounds", "expected"), [((0, 3), (0, 3)), ((-3, -1), (2, 4)), ((-5, 5), (0, 5))]
)
def test_ranges_count_from_the_end_too(path, bounds, expected):
    records = samples(5)
    write(path, records, "group_size:2")
    assert ArrayRecordReader(str(path)).read(*bounds) == records[slice(*expected)]


@pytest.mark.parametrize(
    "bounds", [(0, 0), (0, 6), (3, 2), (-6, 3), (2, -4), (5, 6), (0, 2**31), (0, 2**70)]
)
def test_ranges_that_are_empty_or_outside_are_rejected(path, bounds):
    write(path, samples(5))
    reader = ArrayRecordReader(str(path))
    with pytest.raises(IndexError, match=r"is of range of \[0, 5\)"):
        reader.read(*bounds)
    assert reader.ok()


@pytest.mark.parametrize(
    "arguments",
    [
        ([-1],),
        (np.array([0, -1]),),
        ([1.0],),
        (["0"],),
        ([None],),
        ({0},),
        (iter([0]),),
        ("0",),
        (b"0",),
        (0,),
        (None,),
        (np.array([[0]]),),
        (np.array([0.0]),),
        (np.array([True, False]),),
        (1.0, 2),
        (0, 1, 2),
    ],
)
def test_an_invalid_index_is_a_type_error(path, arguments):
    write(path, samples(5))
    reader = ArrayRecordReader(str(path))
    with pytest.raises(TypeError):
        reader.read(*arguments)
    assert reader.ok()


def test_the_options_of_the_writer_are_in_the_file(path):
    options = "group_size:42,transpose:false,pad_to_block_boundary:true,zstd:5,window_log:20"
    write(path, [], options)
    reader = ArrayRecordReader(str(path))
    assert reader.writer_options_string() == f"{options},max_parallelism:1"
    reader.close()
    assert reader.writer_options_string() == f"{options},max_parallelism:1"


def test_many_threads_read_many_readers(path):
    records = samples(200)
    write(path, records, "group_size:7")
    readers = [ArrayRecordReader(str(path)) for _ in range(32)]

    def read(k):
        order = random.Random(k).sample(range(200), 50)
        return readers[k % 32].read(order) == [records[index] for index in order]

    with ThreadPoolExecutor(16) as executor:
        assert all(executor.map(read, range(200)))


# The rest of the promises.


def test_seeking_goes_to_the_end_at_most(path):
    records = samples(30)
    write(path, records, "group_size:4")
    reader = ArrayRecordReader(str(path))
    for index in (29, 3, np.int64(17), 0):
        reader.seek(index)
        assert reader.record_index() == index
        assert [reader.read() for _ in range(min(3, 30 - index))] == records[index : index + 3]
    for index in (30, 31, 2**40, -1):
        reader.seek(index)
        assert reader.record_index() == 30
        with pytest.raises(IndexError, match="Out of range"):
            reader.read()
    with pytest.raises(TypeError):
        reader.seek(1.5)


def test_batches_leave_alone_which_record_is_next(path):
    records = samples(20)
    write(path, records)
    reader = ArrayRecordReader(str(path))
    for index in range(20):
        assert reader.record_index() == index
        assert reader.read() == records[index]
        assert reader.read([3]) == [records[3]]
        assert reader.read(1, 3) == records[1:3]


def test_a_file_that_cannot_be_read_says_so_at_the_first_read(tmp_path):
    missing = tmp_path / "missing.array_record"
    reader = ArrayRecordReader(str(missing))
    assert not reader.ok()
    assert reader.is_open()
    assert (reader.num_records(), reader.record_index()) == (0, 0)
    assert reader.writer_options_string() is None
    message = f"open() failed: No such file or directory; opening {missing}"
    for call in (
        reader.read,
        reader.read_all,
        reader.close,
        lambda: reader.read([0]),
        lambda: reader.read([]),
        lambda: reader.seek(0),
        reader.close,
    ):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert str(caught.value) == message
        assert isinstance(caught.value, ingot.IngotError | FileNotFoundError)
        assert caught.value.errno == errno.ENOENT
    with pytest.raises(IndexError, match=r"\[0, 1\) is of range of \[0, 0\)"):
        reader.read(0, 1)
    assert not reader.is_open()


@pytest.mark.parametrize("size", [0, 1, 100, 65_535])
@pytest.mark.parametrize("name", ["x.array_record", "x.array_record-00000-of-00002", "x", "x.data"])
def test_a_file_that_is_too_short_is_never_an_empty_one(tmp_path, size, name):
    whole = (GOLDEN / "empty.array_record").read_bytes()
    for content in (whole[:size], b"x" * size):
        path = tmp_path / name
        path.write_bytes(content)
        reader = ArrayRecordReader(str(path))
        assert not reader.ok()
        with pytest.raises(RuntimeError, match="ArrayRecord file should be at least 64KB big"):
            reader.read()


def test_a_file_of_something_else_is_rejected(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"x" * 200_000)
    with pytest.raises(RuntimeError, match="nor that of ArrayRecord") as caught:
        ArrayRecordReader(path).read()
    assert isinstance(caught.value, ingot.FormatError)
    assert caught.value.path == str(path)


def test_a_closed_reader_reads_nothing(path):
    write(path, samples(3))
    reader = ArrayRecordReader(str(path))
    reader.read()
    reader.close()
    reader.close()
    assert (reader.num_records(), reader.record_index()) == (0, 0)
    for call in (
        reader.read,
        reader.read_all,
        lambda: reader.read([0]),
        lambda: reader.read([]),
        lambda: reader.seek(0),
        reader.ingot_reader,
    ):
        with pytest.raises(RuntimeError, match="Object closed") as caught:
            call()
        assert isinstance(caught.value, ingot.ClosedError)


def test_an_index_that_is_not_there_is_a_runtime_error(path):
    write(path, samples(5))
    reader = ArrayRecordReader(str(path))
    for indices in ([0, 5, 99], (0, 5, 99), np.array([0, 5, 99])):
        with pytest.raises(RuntimeError, match="index 5 out of bound 5") as caught:
            reader.read(indices)
        assert isinstance(caught.value, ingot.IngotError)
    with pytest.raises(RuntimeError, match=f"index {2**70} out of bound 5"):
        reader.read([2**70])
    assert reader.ok()


def test_an_empty_file_has_no_first_record(path):
    write(path, [])
    reader = ArrayRecordReader(str(path))
    assert reader.ok()
    assert reader.read_all() == reader.read([]) == []
    with pytest.raises(RuntimeError, match="index 0 out of bound 0"):
        reader.read([0])
    with pytest.raises(IndexError, match="Out of range of num_records: 0"):
        reader.read()
    reader.seek(5)
    assert reader.record_index() == 0


def damage(path, offset):
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def test_a_damaged_record_ends_a_sequence_but_not_batches(path):
    records = samples(30)
    write(path, records, "uncompressed,group_size:10")
    damage(path, path.read_bytes().index(records[15]))
    words = r"Corrupted Riegeli/records file: chunk data hash mismatch \(computed 0x.*, stored 0x"
    reader = ArrayRecordReader(str(path))
    for call in (lambda: reader.read([3, 15]), lambda: reader.read(12, 14), reader.read_all):
        with pytest.raises(RuntimeError, match=words) as caught:
            call()
        assert isinstance(caught.value, ingot.CorruptFileError)
        assert caught.value.path == str(path)
        assert caught.value.offset > 64
        assert 10 <= caught.value.record < 20
    assert reader.ok()
    assert reader.read([25, 9]) == [records[25], records[9]]
    assert [reader.read() for _ in range(10)] == records[:10]
    with pytest.raises(RuntimeError, match=words):
        reader.read()
    assert not reader.ok()
    assert reader.num_records() == 0
    for call in (reader.read, lambda: reader.read([0]), lambda: reader.seek(0), reader.close):
        with pytest.raises(RuntimeError, match=words) as caught:
            call()
        assert str(caught.value).count("Corrupted") == 1


def test_a_damaged_end_is_reported_with_the_file_name(path):
    write(path, samples(3))
    damage(path, path.stat().st_size - 65_536 + 30)
    with pytest.raises(RuntimeError, match=r"postscript: .*; Failed to read RiegeliPostscript$"):
        ArrayRecordReader(path).read()


def test_a_file_appears_when_it_is_closed(path):
    write(path, [b"old"])
    writer = ArrayRecordWriter(str(path))
    writer.write(b"new")
    assert ArrayRecordReader(path).read_all() == [b"old"]
    writer.close()
    writer.close()
    assert ArrayRecordReader(path).read_all() == [b"new"]
    assert names(path.parent) == [path.name]


def test_a_writer_that_is_not_closed_leaves_nothing(path):
    writer = ArrayRecordWriter(str(path))
    writer.write(b"lost")
    with pytest.warns(
        UserWarning, match=r"x.array_record: the writer was never closed; its 1 record is"
    ):
        del writer
    assert names(path.parent) == []


def test_an_exception_leaves_the_old_file(path):
    write(path, [b"old"])
    with pytest.raises(TypeError), ArrayRecordWriter(path) as writer:
        write_all(writer, [b"new", None])
    assert not writer.is_open()
    assert ArrayRecordReader(path).read_all() == [b"old"]
    assert names(path.parent) == [path.name]


def test_a_file_that_cannot_be_written_says_so_at_the_first_write(tmp_path):
    cases = {tmp_path / "no" / "x": "No such file or directory", tmp_path: "Is a directory"}
    for path, reason in cases.items():
        writer = ArrayRecordWriter(str(path))
        assert not writer.ok()
        assert writer.is_open()
        for call in (lambda: writer.write(b"x"), lambda: writer.write(b"x"), writer.close):  # noqa: B023
            with pytest.raises(RuntimeError) as caught:
                call()
            assert str(caught.value) == f"open() failed: {reason}; opening {path}"
        assert not writer.is_open()
        with pytest.raises(RuntimeError, match=reason):
            writer.close()
    assert names(tmp_path) == []


def test_a_full_disk_fails_the_writer_and_leaves_the_old_file(path, run_fault):
    write(path, [b"old"])
    outcome = run_fault("fill_array_record.py", path)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["False", "True"]] * 2 + [["False"] * 2] * 2
    assert all(f"{path}: offset" in line and "File too large" in line for line in lines)
    assert ArrayRecordReader(path).read_all() == [b"old"]
    assert names(path.parent) == [path.name]


def test_a_closed_writer_writes_nothing(path):
    writer = ArrayRecordWriter(str(path))
    writer.close()
    with pytest.raises(RuntimeError, match="Object closed") as caught:
        writer.write(b"x")
    assert isinstance(caught.value, ingot.ClosedError)
    assert ArrayRecordReader(path).read_all() == []


def test_records_are_anything_bytes_like(path):
    given = [b"a", bytearray(b"b"), memoryview(b"c"), np.bytes_(b"d"), np.arange(3)]
    write(path, given)
    assert ArrayRecordReader(path).read_all() == [bytes(record) for record in given]
    with ArrayRecordWriter(path) as writer, pytest.raises(TypeError, match="bytes-like, not str"):
        writer.write("text")


def test_paths_are_text_bytes_or_path_objects(path):
    for kind in (str, os.fsencode, Path):
        write(kind(path), [b"x"])
        with ArrayRecordReader(kind(path)) as reader:
            assert reader.read() == b"x"
        assert not reader.is_open()
    for kind in (ArrayRecordReader, ArrayRecordWriter):
        with pytest.raises(TypeError):
            kind(5)
        with pytest.raises(TypeError):
            kind(path, None)


def test_sizes_may_be_given_as_the_readme_gives_them(path):
    records = samples(50)
    write(path, records, "group_size:10,transpose_bucket_size:64MB,zstd,max_parallelism:4")
    for size in ("0", "16M", "16MB", "16MiB", "0.5k", "auto"):
        reader = ArrayRecordReader(path, f"readahead_buffer_size:{size},max_parallelism:4")
        assert reader.read_all() == records
    with pytest.raises(ValueError, match="Option readahead_buffer_size: invalid value: 2GB"):
        ArrayRecordReader(path, "readahead_buffer_size:2GB")


def test_readers_pickle_with_their_place(path):
    records = samples(50)
    write(path, records)
    reader = ArrayRecordReader(path)
    assert [reader.read() for _ in range(7)] == records[:7]
    again = pickle.loads(pickle.dumps(reader))  # noqa: S301
    assert again.record_index() == 7
    assert [again.read() for _ in range(43)] == [reader.read() for _ in range(43)] == records[7:]


def read_on(reader, queue):
    queue.put([reader.read() for _ in range(93)])


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_continues_where_its_parent_was(path, method):
    records = samples(100)
    write(path, records, "group_size:3")
    reader = ArrayRecordReader(path)
    assert [reader.read() for _ in range(7)] == records[:7]
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=read_on, args=(reader, queue))
    child.start()
    assert queue.get(timeout=60) == records[7:]
    child.join()
    assert child.exitcode == 0
    assert [reader.read() for _ in range(93)] == records[7:]


def test_other_containers_are_read_too(tmp_path):
    with ingot.Writer(tmp_path / "x.ingot") as writer:
        writer.extend([b"a", b"b"])
    reader = ArrayRecordReader(tmp_path / "x.ingot")
    assert reader.read_all() == [b"a", b"b"]
    assert reader.writer_options_string() is None


def test_ingots_own_reader_is_at_hand(path):
    write(path, samples(5))
    assert ArrayRecordReader(path).ingot_reader().verify().ok


def test_the_module_exports_what_array_records_does():
    assert array_record_module.__all__ == ["ArrayRecordReader", "ArrayRecordWriter"]


def test_the_modules_are_found_under_python_too():
    from ingot.compat.array_record.python import (  # noqa: PLC0415
        array_record_data_source,
        array_record_module,
    )

    assert array_record_module.ArrayRecordReader.__module__.startswith("ingot.compat.array_record")
    assert array_record_data_source.ArrayRecordDataSource.__name__ == "ArrayRecordDataSource"


def test_modules_are_imported_by_the_paths_of_the_original():
    code = (
        "from ingot.compat.array_record.python.array_record_module import ArrayRecordWriter\n"
        "from ingot.compat.array_record.python.array_record_data_source import (\n"
        "    ArrayRecordDataSource,\n"
        ")\n"
        "import ingot.compat.array_record.python.array_record_module as module\n"
        "from ingot.compat.array_record import array_record_module\n"
        "assert module is array_record_module\n"
        "assert module.ArrayRecordWriter is ArrayRecordWriter\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
