"""FFRecord's files and API, against golden files of the real package."""

import copy
import hashlib
import multiprocessing
import pickle
import random
import signal
import subprocess
import sys
import threading
import zlib
from itertools import chain
from os import truncate

import numpy as np
import pytest

import ingot
from ingot.compat import ffrecord
from tests.compat.ffrecord.files import FILES, golden, names, samples, write

WITH_RECORDS = [name for name, file in FILES.items() if file["valid"] and "records" in file]


@pytest.mark.parametrize("name", WITH_RECORDS)
@pytest.mark.filterwarnings("ignore:.*old FFRecord file")
def test_golden_files_read_as_they_were_written(name):
    reader = ffrecord.FileReader(golden(name))
    plain = ingot.open(golden(name))
    assert reader.n == len(plain) == FILES[name]["n"]
    for record, expected in zip(reader.read(range(reader.n)), FILES[name]["records"], strict=True):
        assert (len(record), zlib.crc32(record)) == (expected["size"], expected["crc32"])
        assert hashlib.sha256(record).hexdigest() == expected["sha256"]
    assert [bytes(record) for record in reader.read(range(reader.n))] == list(plain)
    assert plain.verify().ok


@pytest.mark.parametrize("name", ["mixed.ffr", "small.ffr", "empty.ffr", "packed.ffr"])
@pytest.mark.parametrize("counted", [True, False])
def test_files_are_written_byte_for_byte_as_by_ffrecord(tmp_path, name, counted):
    records = list(ingot.open(golden(name)))
    path = write(tmp_path / "x.ffr", records, len(records) if counted else None)
    assert path.read_bytes() == golden(name).read_bytes()
    assert names(tmp_path) == ["x.ffr"]


@pytest.mark.parametrize("size", [200_000, 5_000_000])
@pytest.mark.parametrize("counted", [True, False])
def test_a_sample_that_another_thread_changes_still_verifies(tmp_path, size, counted):
    sample = np.zeros(size, np.uint8)
    count = 20_000_000 // size
    done = threading.Event()

    def change():
        while not done.is_set():
            np.add(sample, 1, out=sample)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        with ffrecord.FileWriter(tmp_path / "x.ffr", count if counted else None) as writer:
            for _ in range(count):
                writer.write_one(sample)
    finally:
        done.set()
        thread.join()
    assert ingot.open(tmp_path / "x.ffr").verify().damaged == []


def test_one_damaged_sample_leaves_the_others_alone():
    reader = ffrecord.FileReader(golden("corrupted.ffr"))
    whole = ingot.open(golden("mixed.ffr"))
    for index in set(range(100)) - {50}:
        assert bytes(reader.read_one(index)) == whole[index]
    for read in (lambda: reader.read_one(50), lambda: reader.read([3, 50, 4])):
        with pytest.raises(RuntimeError, match=r"Sample 50: checksum mismached!") as caught:
            read()
        assert isinstance(caught.value, ingot.CorruptFileError)
        assert caught.value.record == 50
    (damage,) = ingot.open(golden("corrupted.ffr")).verify().damaged
    assert (damage.record, damage.records) == (50, 1)


def test_without_checks_stored_bytes_are_returned():
    reader = ffrecord.FileReader(golden("corrupted.ffr"), check_data=False)
    assert not reader.check_data
    assert len(reader.read_one(50)) == FILES["mixed.ffr"]["records"][50]["size"]
    reader = ffrecord.FileReader(golden("corrupted_header.ffr"), check_data=False)
    with pytest.raises(RuntimeError, match="metadata mismached"):
        reader.validate()


def test_a_damaged_index_is_rejected():
    with pytest.raises(RuntimeError, match=r"corrupted_header.*checksum mismatch"):
        ffrecord.FileReader(golden("corrupted_header.ffr"))
    with pytest.raises(ingot.CorruptFileError):
        ingot.open(golden("corrupted_header.ffr"))


def test_a_truncated_file_reads_up_to_the_cut():
    reader, whole = ingot.open(golden("truncated.ffr")), ingot.open(golden("small.ffr"))
    assert [reader[k] for k in range(7)] == [whole[k] for k in range(7)]
    for index in (7, 8, 9):
        with pytest.raises(ingot.CorruptFileError):
            reader[index]
    assert [damage.record for damage in reader.verify().damaged] == [7, 8, 9]


def test_an_unfinished_file_is_never_an_empty_one(tmp_path):
    for name in ("unfinished.ffr",):
        with pytest.raises(RuntimeError, match="died before"):
            ffrecord.FileReader(golden(name))
    for size in range(12):
        path = tmp_path / f"{size}.ffr"
        path.write_bytes(golden("empty.ffr").read_bytes()[:size])
        with pytest.raises(ingot.CorruptFileError, match="ends inside its header"):
            ingot.open(path)


def test_an_old_file_without_a_checksum_of_its_index_warns():
    with pytest.warns(UserWarning, match="old FFRecord file"):
        assert ffrecord.FileReader(golden("legacy_crc0.ffr")).n == 5


def test_any_truncation_or_flipped_bit_is_noticed(tmp_path):
    whole = golden("small.ffr").read_bytes()
    records = list(ingot.open(golden("small.ffr")))
    rng = random.Random(7)
    path = tmp_path / "x.ffr"
    for trial in range(2_000):
        damaged = bytearray(whole)
        if trial % 4 == 0:
            del damaged[rng.randrange(len(whole)) :]
        else:
            damaged[rng.randrange(200 if trial % 2 else len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            reader = ingot.open(path)
        except ingot.CorruptFileError:
            continue
        # A checksum of the index that became 0 says that there is none.
        assert len(reader) == 10
        for index, record in enumerate(records):
            try:
                assert reader[index] == record
            except ingot.CorruptFileError:
                continue


# What FFRecord's own tests ask for.


@pytest.mark.parametrize("num_files", [1, 10])
def test_samples_of_several_files_are_read_one_by_one_and_in_batches(tmp_path, num_files):
    parts = [samples(100, seed) for seed in range(num_files)]
    names = [write(tmp_path / f"{k}.ffr", part, 100) for k, part in enumerate(parts)]
    records = list(chain.from_iterable(parts))
    reader = ffrecord.FileReader(names)
    assert reader.n == len(reader) == 100 * num_files
    order = random.Random(1).sample(range(reader.n), reader.n)
    assert all(bytes(reader.read_one(index)) == records[index] for index in order)
    for start in range(0, len(order), 10):
        batch = order[start : start + 10]
        assert [bytes(one) for one in reader.read(batch)] == [records[k] for k in batch]


def test_a_directory_is_read_in_the_order_of_its_names(tmp_path):
    parts = [samples(7, seed) for seed in range(5)]
    for k, part in enumerate(parts):
        write(tmp_path / f"{k}.ffr", part)
    (tmp_path / "notes.txt").write_text("not a part")
    reader = ffrecord.FileReader(tmp_path)
    assert reader.fnames == [str(tmp_path / f"{k}.ffr") for k in range(5)]
    assert [bytes(one) for one in reader.read(range(reader.n))] == list(chain.from_iterable(parts))
    assert (
        list(ingot.open(tmp_path))
        == list(ingot.open(str(tmp_path / "*.ffr")))
        == list(chain.from_iterable(parts))
    )


def test_the_golden_parts_are_one_sequence():
    assert list(ingot.open(golden("multi"))) == list(ingot.open(golden("small.ffr")))


def test_readers_and_writers_take_path_objects_and_close_themselves(tmp_path):
    with ffrecord.FileWriter(tmp_path / "x.ffr", n=2) as writer:
        writer.write_one(b"one")
        writer.write_one(np.arange(3, dtype=np.int64))
        assert (writer.n, writer.count) == (2, 2)
    with ffrecord.FileReader(tmp_path / "x.ffr") as reader:
        assert bytes(reader.read_one(1)) == np.arange(3, dtype=np.int64).tobytes()
    with pytest.raises(RuntimeError, match=r"FileReader has been closed\."):
        reader.read([0])
    reader.close()


class Named(ffrecord.FileReader):
    def __init__(self, path, name):
        super().__init__(path)
        self.name = name

    def read(self, indices):
        return [self.name + sample.tobytes().decode() for sample in super().read(indices)]


def test_a_subclass_pickles_with_its_attributes(tmp_path):
    write(tmp_path / "x.ffr", [b"a", b"b"])
    again = pickle.loads(pickle.dumps(Named(tmp_path / "x.ffr", "x")))  # noqa: S301
    assert type(again) is Named
    assert (again.n, again.name, again[[1, 0]]) == (2, "x", ["xb", "xa"])
    again.close()
    assert copy.copy(again).read([0]) == ["xa"]


def test_readers_pickle_and_both_read_the_same():
    reader = ffrecord.FileReader(golden("mixed.ffr"), check_data=False)
    copy = pickle.loads(pickle.dumps(reader))  # noqa: S301
    assert not copy.check_data
    pairs = zip(copy.read(range(100)), reader.read(range(100)), strict=True)
    assert all(bytes(a) == bytes(b) for a, b in pairs)


@pytest.mark.parametrize(("count", "nfiles"), [(100, 1), (100, 8), (100, 64), (10, 16)])
def test_a_dump_reads_back_in_order(tmp_path, count, nfiles, recwarn):
    records = samples(count)
    target = tmp_path / "x.ffr"
    ffrecord.utils.dump(records, target, nfiles)
    assert [bytes(one) for one in ffrecord.FileReader(target).read(range(count))] == records
    step = -(-count // nfiles)
    warned = [str(one.message) for one in recwarn if one.category is UserWarning]
    assert bool(warned) == (-(-count // step) < nfiles)


def test_a_dump_removes_the_parts_of_a_longer_one(tmp_path):
    ffrecord.utils.dump(samples(40), tmp_path, 8)
    ffrecord.utils.dump(samples(20, seed=1), tmp_path, 4)
    assert list(ingot.open(tmp_path)) == samples(20, seed=1)


class Failing(list):
    def __getitem__(self, index):
        message = f"sample {index} cannot be had"
        raise LookupError(message)


def test_a_dump_that_fails_says_so_and_leaves_no_part(tmp_path):
    with pytest.raises(LookupError, match="cannot be had"):
        ffrecord.utils.dump(Failing([1, 2, 3, 4]), tmp_path / "x", 2)
    assert names(tmp_path) == []
    (tmp_path / "x").mkdir()
    with pytest.raises(LookupError, match="cannot be had"):
        ffrecord.utils.dump(Failing([1, 2, 3, 4]), tmp_path / "x", 2)
    assert names(tmp_path) == ["x"]
    for nfiles, dataset in ((0, [b"a"]), (3, [])):
        with pytest.raises(ValueError, match=r"nfiles|no samples"):
            ffrecord.utils.dump(dataset, tmp_path / "y", nfiles)


def test_a_plain_file_system_does_not_align(tmp_path):
    with (tmp_path / "x").open("wb") as file:
        assert ffrecord.checkFsAlign(file.fileno()) is False
    assert ffrecord.checkFsAlign(12345) is False


# Where FFRecord crashes, hangs or returns something else.


def test_samples_are_writable_arrays_of_bytes():
    reader = ffrecord.FileReader(golden("mixed.ffr"))
    for array in [reader.read_one(9), *reader.read([9, 0, 10])]:
        assert (array.dtype, array.ndim) == (np.uint8, 1)
        assert array.flags.writeable
    one = reader.read_one(9)
    one[:] = 0
    assert bytes(reader.read_one(9)) != bytes(one)


@pytest.mark.parametrize(("index", "words"), [(10, ">= number"), (-11, "< -number")])
def test_an_index_out_of_range_has_a_fitting_message(index, words):
    reader = ffrecord.FileReader(golden("small.ffr"))
    for call in (reader.read_one, lambda index: reader.read([0, index])):
        with pytest.raises(RuntimeError, match=rf"index {index} .*\(index {words} of samples\)$"):
            call(index)


def test_indices_of_every_kind():
    reader = ffrecord.FileReader(golden("mixed.ffr"))
    expected = [bytes(reader.read_one(k)) for k in (5, 1, 9)]
    for indices in (
        [5, 1, 9],
        (5, 1, 9),
        np.array([5, 1, 9]),
        iter([5, 1, 9]),
        [5, -99, np.int8(9)],
    ):
        assert [bytes(one) for one in reader.read(indices)] == expected
    assert reader.read([]) == []
    assert len(reader.read(range(100)) * 50) == 5000
    assert len(reader.read([7] * 5000)) == 5000
    assert bytes(reader.read_one(-1)) == bytes(reader.read_one(99))
    for index in (100, -101):
        with pytest.raises(RuntimeError, match="number of samples") as caught:
            reader.read_one(index)
        assert isinstance(caught.value, IndexError)
    for wrong in (1.5, "1", None):
        with pytest.raises(TypeError):
            reader.read_one(wrong)
        with pytest.raises(TypeError):
            reader.read([wrong])
    with pytest.raises(TypeError):
        reader.read(3)


@pytest.mark.parametrize(
    "record",
    [
        np.arange(3, dtype=np.int64),
        np.ones((2, 5), np.float32),
        bytearray(b"abc"),
        memoryview(b"abc"),
        np.array(1.5),
        b"",
    ],
)
def test_every_byte_of_a_buffer_is_written(tmp_path, record):
    path = write(tmp_path / "x.ffr", [record, record])
    assert list(ingot.open(path)) == [memoryview(record).tobytes()] * 2


def test_objects_without_contiguous_bytes_are_rejected(tmp_path):
    with ffrecord.FileWriter(tmp_path / "x.ffr") as writer:
        for wrong in ("text", None, [1], 3):
            with pytest.raises(TypeError, match="bytes-like"):
                writer.write_one(wrong)
        with pytest.raises(ValueError, match="contiguous"):
            writer.write_one(np.arange(10)[::2])
        writer.write_one(b"still usable")
    assert list(ingot.open(tmp_path / "x.ffr")) == [b"still usable"]


def test_too_many_and_too_few_samples_are_errors_and_nothing_more(tmp_path):
    path = tmp_path / "x.ffr"
    writer = ffrecord.FileWriter(path, 2)
    writer.write_one(b"one")
    with pytest.raises(RuntimeError, match=r"mismatched! Wrote 1 samples but expected 2"):
        writer.close()
    writer.write_one(b"two")
    with pytest.raises(RuntimeError, match="Exceed total number of samples: 2"):
        writer.write_one(b"three")
    writer.close()
    writer.close()
    assert list(ingot.open(path)) == [b"one", b"two"]
    with pytest.raises(ValueError, match=r"closed|Exceed"):
        writer.write_one(b"four")


def test_an_exception_while_writing_leaves_what_was_there(tmp_path):
    path = write(tmp_path / "x.ffr", [b"old"])

    def fail():
        with ffrecord.FileWriter(path, 5) as writer:
            writer.write_one(b"new")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert names(tmp_path) == ["x.ffr"]
    assert list(ingot.open(path)) == [b"old"]


def test_a_writer_that_is_forgotten_completes_or_warns(tmp_path):
    writer = ffrecord.FileWriter(tmp_path / "whole.ffr", 1)
    writer.write_one(b"all there is")
    del writer
    assert list(ingot.open(tmp_path / "whole.ffr")) == [b"all there is"]
    code = (
        "import sys\nfrom ingot.compat import ffrecord\n"
        "writer = ffrecord.FileWriter(sys.argv[1], 2)\nwriter.write_one(b'half')\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-W", "default", "-c", code, tmp_path / "half.ffr"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert outcome.returncode == 0
    assert "never closed" in outcome.stderr
    assert names(tmp_path) == ["whole.ffr"]


def test_a_file_with_all_its_samples_is_completed_whatever_comes_then(tmp_path):
    def fail():
        with ffrecord.FileWriter(tmp_path / "with.ffr", 1) as writer:
            writer.write_one(b"all there is")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    code = (
        "import sys\nfrom ingot.compat import ffrecord\n"
        "writer = ffrecord.FileWriter(sys.argv[1], 1)\nwriter.write_one(b'all there is')\n"
        "sys.exit(3)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "exit.ffr"], check=False)
    for name in ("with.ffr", "exit.ffr"):
        assert list(ingot.open(tmp_path / name)) == [b"all there is"]


@pytest.mark.parametrize(("n", "suffix"), [(2, ".part"), (None, ".spool")])
def test_a_file_that_was_cut_while_it_was_written_is_not_published(tmp_path, n, suffix):
    target = tmp_path / "a.ffr"
    writer = ffrecord.FileWriter(target, n)
    writer.write_one(bytes(300_000))
    truncate(f"{target}{suffix}", 200_000)
    writer.write_one(b"x")
    with pytest.raises(ingot.StorageError, match="another process changed the file"):
        writer.close()
    writer._writer.abandon()
    assert names(tmp_path) == []


def test_a_killed_writer_leaves_nothing_under_the_name_and_blocks_no_other(tmp_path):
    path = tmp_path / "x.ffr"
    code = (
        "import os, sys\nfrom ingot.compat import ffrecord\n"
        "writer = ffrecord.FileWriter(sys.argv[1], eval(sys.argv[2]))\n"
        "for _ in range(1000):\n    writer.write_one(bytes(1000))\n"
        f"os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
    )
    for n in ("None", "2000"):
        outcome = subprocess.run([sys.executable, "-c", code, path, n], check=False)
        assert outcome.returncode == -signal.SIGKILL
        assert not path.exists()
    write(path, [b"next"])
    assert list(ingot.open(path)) == [b"next"]


@pytest.mark.parametrize("n", [1, None])
@pytest.mark.parametrize("folder", ["missing", "file"])
def test_the_error_for_a_missing_folder_names_the_target(tmp_path, folder, n):
    (tmp_path / "file").write_bytes(b"")
    target = tmp_path / folder / "a.ffr"
    with pytest.raises(RuntimeError, match=r"/a\.ffr(: |'$)") as caught:
        ffrecord.FileWriter(target, n)
    assert isinstance(caught.value, ingot.StorageError)
    assert isinstance(caught.value, FileNotFoundError) == (folder == "missing")


@pytest.mark.parametrize("n", ["2", 2.0, [2]])
def test_an_invalid_number_of_samples_is_named(tmp_path, n):
    message = f"a.ffr: n must be the number of samples, an integer, got {type(n).__name__}"
    with pytest.raises(TypeError, match=message):
        ffrecord.FileWriter(tmp_path / "a.ffr", n)
    assert names(tmp_path) == []


def test_two_writers_of_one_file_do_not_mix(tmp_path):
    first = ffrecord.FileWriter(tmp_path / "x.ffr", 1)
    with pytest.raises(ingot.StorageError, match="another writer"):
        ffrecord.FileWriter(tmp_path / "x.ffr", 1)
    first.write_one(b"mine")
    first.close()
    assert list(ingot.open(tmp_path / "x.ffr")) == [b"mine"]


@pytest.mark.parametrize("n", [-1, 1 << 60])
def test_an_absurd_count_is_rejected_before_anything_is_touched(tmp_path, n):
    path = write(tmp_path / "x.ffr", [b"old"])
    with pytest.raises(ValueError, match=r"samples|records"):
        ffrecord.FileWriter(path, n)
    assert names(tmp_path) == ["x.ffr"]
    assert list(ingot.open(path)) == [b"old"]


FULL_DISK = """
import resource, signal, sys
import ingot
from ingot.compat import ffrecord
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
raised = []
try:
    with ffrecord.FileWriter(sys.argv[1], eval(sys.argv[2])) as writer:
        for _ in range(400):
            writer.write_one(bytes(3_000))
except ingot.StorageError as error:
    raised.append(error.errno)
print(raised)
"""


@pytest.mark.parametrize("n", ["400", "None", "100_000"])
def test_a_full_disk_is_an_error_and_leaves_what_was_there(tmp_path, n):
    path = write(tmp_path / "x.ffr", [b"old"])
    outcome = subprocess.run(
        [sys.executable, "-c", FULL_DISK, path, n], check=False, capture_output=True, text=True
    )
    assert outcome.stdout == "[27]\n", outcome.stderr
    assert names(tmp_path) == ["x.ffr"]
    assert list(ingot.open(path)) == [b"old"]


def test_path_errors_match_ffrecord(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.ffr").mkdir()
    for wrong, match in (
        (tmp_path / "none.ffr", "does not exist"),
        (tmp_path / "x.txt", r"does not end with \.ffr"),
        (tmp_path / "empty", "At least one"),
        ([], "At least one"),
        ([tmp_path / "folder.ffr"], "is not a file"),
    ):
        with pytest.raises(AssertionError, match=match):
            ffrecord.FileReader(wrong)
    for wrong in (b"x.ffr", {"x.ffr"}, None):
        with pytest.raises(TypeError, match="fname must be"):
            ffrecord.FileReader(wrong)
    with pytest.raises(AssertionError, match="does not end"):
        ffrecord.FileWriter(tmp_path / "x.bin", 1)


def test_offsets_and_checksums_can_be_had():
    reader = ffrecord.FileReader(golden("small.ffr"))
    records = FILES["small.ffr"]["records"]
    assert reader.get_offsets(0).tolist() == [
        *(one["offset"] for one in records),
        FILES["small.ffr"]["size"],
    ]
    assert reader.get_checksums(0).tolist() == [one["crc32"] for one in records]
    assert ffrecord.FileReader(golden("empty.ffr")).get_checksums(0).tolist() == []
    reader.validate()
    with pytest.raises(IndexError):
        reader.get_offsets(1)


def read_all(reader, seed):
    order = random.Random(seed).sample(range(reader.n), reader.n)
    return zlib.crc32(b"".join(map(bytes, reader.read(order))))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_reader_that_was_used_works_in_child_processes(method):
    reader = ffrecord.FileReader(golden("mixed.ffr"))
    expected = [read_all(reader, seed) for seed in range(20)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(read_all, [(reader, seed) for seed in range(20)]) == expected


def test_readers_are_safe_from_several_threads_and_in_any_number():
    readers = [ffrecord.FileReader(golden("mixed.ffr")) for _ in range(40)]
    expected = read_all(readers[0], 0)
    found = []

    def read(reader):
        found.append(read_all(reader, 0))

    threads = [threading.Thread(target=read, args=(one,)) for one in [*readers, readers[0]]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 41
