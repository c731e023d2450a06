"""ArrayRecord's data source."""

import copy
import hashlib
import inspect
import logging
import os
import pickle
import random
import signal
import threading
from concurrent import futures
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pytest

import ingot
from ingot.compat.array_record import array_record_data_source, array_record_module
from ingot.compat.array_record.array_record_data_source import ArrayRecordDataSource
from ingot.compat.array_record.files import Files

DIGITS = [str(k).encode() for k in range(10)]


@dataclass
class Instruction:
    """What TFDS makes."""

    filename: str
    skip: int
    take: int
    examples_in_shard: int = 99


def write(path, records, options=""):
    with array_record_module.ArrayRecordWriter(path, options) as writer:
        for record in records:
            writer.write(record)
    return path


@pytest.fixture
def digits(tmp_path):
    """Return the paths of two files of five records each."""
    names = [f"digits.array_record-0000{k}-of-00002" for k in range(2)]
    return [write(tmp_path / name, DIGITS[5 * k :][:5]) for k, name in enumerate(names)]


# What ArrayRecord's own tests ask for.


@pytest.mark.parametrize("size", [65536, 11])
def test_files_with_groups_are_logged_as_errors(tmp_path, caplog, size):
    path = write(tmp_path / "x.array_record", [b"foobar"], f"group_size:{size}")
    reader = array_record_module.ArrayRecordReader(path)
    array_record_data_source._check_group_size(path, reader)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.name.startswith("ingot.compat.array_record")
    assert record.getMessage().startswith(
        f"File {path} was created with group size {size}. "
        "Grain requires group size 1 for good performance"
    )


def test_files_without_groups_are_not(digits, caplog):
    reader = array_record_module.ArrayRecordReader(digits[0])
    array_record_data_source._check_group_size(digits[0], reader)
    assert len(ArrayRecordDataSource(digits)) == 10
    assert caplog.records == []


def test_each_file_with_groups_is_logged_once(tmp_path, caplog):
    paths = [write(tmp_path / f"{k}.array_record", DIGITS, "group_size:2") for k in range(3)]
    with ArrayRecordDataSource(paths[:2]) as source:
        assert source[3:17] == (DIGITS * 2)[3:17]
    assert [record.args[0] for record in caplog.records] == [str(path) for path in paths[:2]]
    caplog.clear()
    source = ArrayRecordDataSource(f"{paths[2]}[2:5]")
    assert caplog.records == []
    assert [source[0], *source] == [b"2", b"2", b"3", b"4"]
    assert len(caplog.records) == 1


def test_files_are_concatenated(digits):
    source = ArrayRecordDataSource(digits)
    assert len(source) == 10
    assert list(source) == DIGITS
    assert [source[key] for key in range(10)] == DIGITS


def test_one_path_needs_no_list(digits):
    for path in (digits[0], str(digits[0])):
        with ArrayRecordDataSource(path) as source:
            assert [source[key] for key in range(5)] == DIGITS[:5]
        assert source._readers == [None]


def test_parts_of_files_are_read_by_their_bounds(digits):
    source = ArrayRecordDataSource([f"{digits[0]}[0:3]", f"{digits[1]}[2:4]"])
    expected = [b"0", b"1", b"2", b"7", b"8"]
    assert len(source) == 5
    assert [source[key] for key in range(5)] == list(source) == source[:] == expected


@pytest.mark.parametrize("order", [range(9, -1, -1), [3, 0, 5, 9, 2, 1, 4, 7, 8, 6]])
def test_records_are_read_in_any_order(digits, order):
    with ArrayRecordDataSource(digits) as source:
        assert [source[key] for key in order] == [DIGITS[key] for key in order]
        assert source.__getitems__(order) == [DIGITS[key] for key in order]
    assert source._readers == [None, None]


def test_instructions_skip_and_take(digits):
    instructions = [Instruction(os.fspath(digits[0]), 2, 1, 3), Instruction(digits[1], 2, 2)]
    assert all(isinstance(one, array_record_data_source.FileInstruction) for one in instructions)
    with ArrayRecordDataSource(instructions) as source:
        assert [source[key] for key in range(3)] == [b"2", b"7", b"8"]
    assert source._readers == [None, None]
    assert list(ArrayRecordDataSource(instructions[0])) == [b"2"]


def test_keys_are_mapped_to_instructions_and_positions():
    instructions = [Instruction("1", 0, 2), Instruction("2", 2, 3), Instruction("3", 10, 1)]
    with ArrayRecordDataSource(instructions) as source:
        assert len(source) == 6
        assert [source._reader_idx_and_position(key) for key in range(6)] == [
            (0, 0),
            (0, 1),
            (1, 2),
            (1, 3),
            (1, 4),
            (2, 10),
        ]


@pytest.mark.parametrize("key", [-1, 10, 2**70, np.int64(-3)])
def test_keys_that_are_not_there_are_value_errors(digits, key):
    whole = ArrayRecordDataSource(digits)
    parts = ArrayRecordDataSource([f"{digits[0]}[0:5]", f"{digits[1]}[0:5]"])
    for source in (whole, parts):
        for call in (
            source.__getitem__,
            source._reader_idx_and_position,
            lambda key: source[[0, key, 1]],  # noqa: B023
            lambda key: source.__getitems__([key]),  # noqa: B023
        ):
            with pytest.raises(ValueError, match=r"Record key should be in \[0, num_records\)"):
                call(key)


def test_no_paths_and_wrong_paths_are_value_errors(digits):
    with pytest.raises(ValueError, match="can not be of 0 length"):
        ArrayRecordDataSource([])
    for paths in (None, {digits[0]}, iter(digits), 5):
        with pytest.raises(ValueError, match="Unsupported path format"):
            ArrayRecordDataSource(paths)
    for paths in ([digits[0], 5], b"x", (None,)):
        with pytest.raises(ValueError, match="All elements in a path sequence must be of type"):
            ArrayRecordDataSource(paths)


def test_the_representation_is_the_hash_of_the_names(digits):
    digest = hashlib.sha1("".join(map(str, digits)).encode()).hexdigest()  # noqa: S324
    expected = f"ArrayRecordDataSource(hash_of_paths={digest})"
    assert repr(ArrayRecordDataSource(digits)) == expected
    assert repr(ArrayRecordDataSource([f"{path}[1:2]" for path in digits])) == expected
    assert repr(ArrayRecordDataSource(str(digits[0].parent / "*"))) == expected


def test_functions_run_in_parallel_with_their_arguments():
    function = mock.Mock(return_value="return value")
    run = array_record_data_source._run_in_parallel
    calls = [{"foo": 1}, {"bar": 2}]
    assert run(function, calls, num_workers=1) == ["return value"] * 2
    function.assert_has_calls([mock.call(foo=1), mock.call(bar=2)])
    executor = "concurrent.futures.ThreadPoolExecutor"
    with mock.patch(executor, wraps=futures.ThreadPoolExecutor) as made:
        run(function=function, list_of_kwargs_to_function=calls, num_workers=42)
    made.assert_called_with(42)
    function.side_effect = ["return value", ValueError("Raised!")]
    with pytest.raises(ValueError, match="Raised!"):
        run(function, calls, num_workers=1)
    for num_workers in (0, -1, -2):
        with pytest.raises(ValueError, match="num_workers must be >=1 for parallelism"):
            run(function, calls, num_workers)


# The rest of the promises.


def test_the_readme_example_works(tmp_path):
    records = [b"record %d" % k for k in range(600)]
    path = write(tmp_path / "x.array_record", records, "group_size:1,brotli:9")
    options = {"readahead_buffer_size": "16MB", "max_parallelism": 4}
    with ArrayRecordDataSource(str(path), reader_options=options) as source:
        assert source[[10, 50, 100, 500]] == [records[k] for k in (10, 50, 100, 500)]
        assert source[2:9] == records[2:9]
        assert source[::-100] == records[::-100]
        assert source[np.array([7, 3])] == [records[7], records[3]]
        assert source[np.int64(7)] == source[np.array(7)] == source[True + 6] == records[7]


@pytest.mark.parametrize("keys", [[], (), range(0), np.array([], int), np.array([])])
def test_an_empty_batch_is_empty(digits, keys):
    source = ArrayRecordDataSource(digits)
    assert source.__getitems__(keys) == source[keys] == source._getitems(keys) == []


@pytest.mark.parametrize("key", [1.0, "1", None, [1.0], ["1"], [None], np.array([True]), [[1]]])
def test_an_invalid_key_is_a_type_error(digits, key):
    source = ArrayRecordDataSource(digits)
    for call in (source.__getitem__, source.__getitems__):
        with pytest.raises(TypeError):
            call(key)


def test_keys_of_a_batch_come_from_anything_that_can_be_iterated(digits):
    source = ArrayRecordDataSource(digits)
    for keys in ((7, 3), iter([7, 3]), np.array([7, 3], np.uint64), range(7, 2, -4)):
        assert source.__getitems__(keys) == [b"7", b"3"]


def test_patterns_stand_for_their_files_in_the_order_of_their_names(digits, tmp_path):
    assert list(ArrayRecordDataSource(str(tmp_path / "digits*"))) == DIGITS
    mixed = [tmp_path / "digits*-0000[1]-*", f"{digits[0]}[1:2]"]
    assert list(ArrayRecordDataSource(mixed)) == [*DIGITS[5:], b"1"]
    with pytest.raises(RuntimeError, match=r"No such file or directory; opening .*none\*"):
        ArrayRecordDataSource(str(tmp_path / "none*"))
    write(tmp_path / "odd[1].array_record", [b"odd"])
    assert list(ArrayRecordDataSource(tmp_path / "odd[1].array_record")) == [b"odd"]


def test_names_stay_relative(digits, monkeypatch):
    monkeypatch.chdir(digits[0].parent)
    source = ArrayRecordDataSource([path.name for path in digits])
    assert source._paths == [path.name for path in digits]
    assert source[7] == b"7"


def test_whole_files_are_opened_at_once_and_parts_when_they_are_read(digits, tmp_path):
    missing = tmp_path / "missing.array_record"
    with pytest.raises(RuntimeError, match=f"opening {missing}"):
        ArrayRecordDataSource([digits[0], missing])
    source = ArrayRecordDataSource([f"{digits[0]}[1:3]", f"{missing}[0:5]", digits[1]])
    assert len(source) == 12
    assert (source[0], source[7], source[[8, 1]]) == (b"1", b"5", [b"6", b"2"])
    for call in (lambda: source[2], lambda: source[[0, 2]], lambda: list(source)):
        with pytest.raises(RuntimeError, match="No such file or directory") as caught:
            call()
        assert isinstance(caught.value, FileNotFoundError)
    assert source[1] == b"2"


def test_parts_beyond_the_end_of_a_file_do_not_reach_into_the_next(digits):
    source = ArrayRecordDataSource([f"{digits[0]}[3:8]", f"{digits[1]}[9:11]", digits[1]])
    assert (len(source), source[[0, 1]], source[[7, 8]]) == (12, [b"3", b"4"], [b"5", b"6"])
    for key, message in ((2, "index 5 out of bound 5"), (5, "index 9 out of bound 5")):
        for call in (lambda key: source[key], lambda key: source[[0, key]]):
            with pytest.raises(RuntimeError, match=message):
                call(key)
    records = iter(source)
    assert [next(records), next(records)] == [b"3", b"4"]
    with pytest.raises(RuntimeError, match=f"{digits[0]}: index 5 out of bound 5"):
        next(records)


@pytest.mark.parametrize("bounds", [(3, 1), (-1, 5)])
def test_invalid_parts_are_rejected(digits, bounds):
    start, end = bounds
    with pytest.raises(ValueError, match=f"invalid range of records, {start} to {end}"):
        ArrayRecordDataSource(Instruction(digits[0], start, end - start))


def test_a_file_may_be_there_several_times(digits):
    source = ArrayRecordDataSource([digits[0], digits[0], f"{digits[0]}[1:3]", digits[1]])
    expected = [*DIGITS[:5], *DIGITS[:5], b"1", b"2", *DIGITS[5:]]
    assert list(source) == source[:] == [source[key] for key in range(17)] == expected
    assert len({id(reader) for reader in source._readers}) == 2


def test_random_parts_of_random_files_are_as_their_records(tmp_path):
    rng = random.Random(3)
    files = []
    for k in range(6):
        records = [rng.randbytes(rng.randrange(50)) for _ in range(rng.randrange(40))]
        options = rng.choice(["", "group_size:5", "uncompressed"])
        files.append((write(tmp_path / f"{k}.array_record", records, options), records))
    for _ in range(40):
        paths, expected = [], []
        for path, records in rng.choices(files, k=rng.randrange(1, 9)):
            start, end = sorted(rng.choices(range(len(records) + 1), k=2))
            whole = rng.random() < 0.3
            paths.append(str(path) if whole else f"{path}[{start}:{end}]")
            expected += records if whole else records[start:end]
        source = ArrayRecordDataSource(paths)
        assert len(source) == len(expected)
        keys = rng.choices(range(len(expected)), k=30) if expected else []
        assert [source[key] for key in keys] == [expected[key] for key in keys]
        assert source.__getitems__(keys) == [expected[key] for key in keys]
        assert list(source) == expected
        with source:
            pass
        assert source[:] == expected


def test_many_files_are_opened_with_one_pool_and_read_with_none(tmp_path):
    paths = [tmp_path / f"{k:03}.array_record" for k in range(100)]
    for path in paths:
        write(path, [path.name.encode()] * 3)
    executor = "concurrent.futures.ThreadPoolExecutor"
    with mock.patch(executor, wraps=futures.ThreadPoolExecutor) as made:
        source = ArrayRecordDataSource(paths)
        assert made.call_count == 1
        assert source[299] == b"099.array_record"
        assert len(source[::7]) == 43
        assert made.call_count == 1


def test_parts_of_many_files_are_joined_a_few_times_only(tmp_path):
    paths = [tmp_path / f"{k:03}.array_record" for k in range(100)]
    for path in paths[:-1]:
        write(path, [path.name.encode()] * 3)
    source = ArrayRecordDataSource([f"{path}[1:3]" for path in paths])
    with mock.patch.object(array_record_data_source, "Files", wraps=Files) as joined:
        for key in random.Random(1).sample(range(198), 198):
            assert source[key] == paths[key // 2].name.encode()
        assert joined.call_count < 12
    assert source._readers[-1] is None
    with pytest.raises(FileNotFoundError):
        source[198]


def test_a_damaged_record_names_its_file(digits):
    content = bytearray(digits[1].read_bytes())
    content[content.index(b"7")] ^= 1
    digits[1].write_bytes(content)
    source = ArrayRecordDataSource(digits)
    for call in (lambda: source[7], lambda: source[[0, 7]], lambda: list(source)):
        with pytest.raises(RuntimeError, match="Corrupted Riegeli/records file") as caught:
            call()
        assert isinstance(caught.value, ingot.CorruptFileError)
        assert caught.value.path == str(digits[1])
        assert caught.value.record == 7
    assert source[[6, 8]] == [b"6", b"8"]


def test_reader_options_are_checked(digits):
    for options in ({"max_parallelism": "2"}, {"index_storage_option": "in_memory"}, "", {}):
        assert ArrayRecordDataSource(digits, options)[3] == b"3"
    for options in ({"unknown": 1}, {"max_parallelism": "many"}, "unknown:1"):
        with pytest.raises(ValueError, match="ption"):
            ArrayRecordDataSource(digits, options)
    names = list(inspect.signature(ArrayRecordDataSource.__init__).parameters)
    assert names == ["self", "paths", "reader_options"]


def test_sources_pickle_by_their_paths(digits):
    source = ArrayRecordDataSource([digits[0], f"{digits[1]}[1:3]"], {"max_parallelism": "1"})
    for again in (pickle.loads(pickle.dumps(source)), copy.deepcopy(source)):  # noqa: S301
        assert again._readers == [None, None]
        assert repr(again) == repr(source)
        assert list(again) == list(source)
    names = ["_num_records", "_paths", "_prefix_sums", "_read_instructions"]
    assert sorted(source.__getstate__()) == [*names, "_reader_options_string"]
    assert len(pickle.dumps(source)) < 1024


def test_sources_are_sequences_in_all_but_name(digits):
    source = ArrayRecordDataSource(digits)
    assert b"3" in source
    assert b"x" not in source
    assert list(reversed(source)) == DIGITS[::-1]
    assert source != ArrayRecordDataSource(digits)


def test_a_source_that_was_left_opens_its_files_again(digits):
    with ArrayRecordDataSource(digits) as source:
        assert None not in source._readers
    assert source[3] == b"3"
    assert source._readers[0] is not None
    assert source._readers[1] is None
    assert source[:] == DIGITS


def test_other_containers_may_be_among_the_files(digits, tmp_path):
    with ingot.Writer(tmp_path / "x.ingot") as writer:
        writer.extend([b"a", b"b"])
    source = ArrayRecordDataSource([*digits, tmp_path / "x.ingot", f"{tmp_path}/x.ingot[1:2]"])
    assert list(source) == source[:] == [*DIGITS, b"a", b"b", b"b"]


def test_threads_share_a_source(digits):
    paths = [f"{digits[k % 2]}[{k % 5}:{k % 5 + 1}]" for k in range(50)]
    source = ArrayRecordDataSource(paths)
    expected = [DIGITS[5 * (k % 2) + k % 5] for k in range(50)]
    with futures.ThreadPoolExecutor(16) as executor:
        assert list(executor.map(source.__getitem__, range(50))) == expected
        batches = executor.map(source.__getitems__, [[k, 49 - k] for k in range(50)])
        assert list(batches) == [[expected[k], expected[49 - k]] for k in range(50)]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_that_is_forked_while_a_thread_opens_files_reads(digits, monkeypatch):
    source = ArrayRecordDataSource([f"{path}[0:5]" for path in digits])
    opening, done = threading.Event(), threading.Event()
    parent, create = os.getpid(), array_record_data_source.create_readers

    def create_slowly(*arguments):
        if os.getpid() == parent:
            opening.set()
            done.wait()
        return create(*arguments)

    monkeypatch.setattr(array_record_data_source, "create_readers", create_slowly)
    thread = threading.Thread(target=source.__getitem__, args=(0,))
    thread.start()
    opening.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(source[7] != DIGITS[7])
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert status == 0
