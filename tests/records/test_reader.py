import array
import copy
import itertools
import os
import pickle
import random
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ingot

RECORDS = [b"%d-" % k * (k % 7) for k in range(100)]
COUNT = len(RECORDS)
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i2", ">i4", ">i8"]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    path = tmp_path_factory.mktemp("reader") / "x.ingot"
    with ingot.Writer(path, metadata={"made": "here"}) as writer:
        writer.extend(RECORDS)
    with ingot.open(path) as reader:
        yield reader


def many_pages(path, **options):
    """Write records that fill several index pages, and return them."""
    records = [b"%d" % k for k in range(30_000)]
    with ingot.Writer(path, **options) as writer:
        writer.extend(records)
    return records


in_range = st.integers(-COUNT, COUNT - 1)
bounds = st.none() | st.integers(-2 * COUNT, 2 * COUNT)
slices = st.builds(slice, bounds, bounds, bounds.filter(lambda step: step != 0))
relaxed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def test_a_reader_is_a_sequence(reader):
    assert isinstance(reader, Sequence)
    assert isinstance(reader[2:5], Sequence)
    assert isinstance(reader.read([1]), Sequence)
    assert len(reader) == COUNT
    assert bool(reader)


@relaxed
@given(index=in_range)
def test_an_integer_gives_the_record_a_list_would(reader, index):
    assert reader[index] == RECORDS[index]
    assert reader[np.int64(index)] == RECORDS[index]
    assert reader[np.array(index)] == RECORDS[index]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_any_numpy_integer_is_an_index(reader, dtype):
    assert reader[np.array([3], dtype)[0]] == RECORDS[3]


def test_a_bool_is_an_integer_as_for_a_list(reader):
    assert reader[True] == RECORDS[1]


@relaxed
@given(one=slices, other=slices, third=slices)
def test_slices_are_views_like_those_of_a_range(reader, one, other, third):
    view = reader[one]
    assert isinstance(view, ingot.View)
    assert list(view) == RECORDS[one]
    assert len(view) == len(RECORDS[one])
    assert list(view[other]) == RECORDS[one][other]
    assert list(view[other][third]) == RECORDS[one][other][third]
    assert list(reversed(view)) == RECORDS[one][::-1]


@relaxed
@given(data=st.data(), part=slices.filter(lambda part: RECORDS[part]))
def test_views_are_indexed_like_lists(reader, data, part):
    expected = RECORDS[part]
    indices = data.draw(st.lists(st.integers(-len(expected), len(expected) - 1)))
    view = reader[part]
    assert view[indices] == [expected[k] for k in indices]
    assert view[tuple(indices)] == [expected[k] for k in indices]
    assert view[np.array(indices, np.int64)] == [expected[k] for k in indices]
    for index in indices[:3]:
        assert view[index] == view[np.int32(index)] == view[np.array(index)] == expected[index]


def test_a_view_reads_nothing_until_it_is_asked(make):
    path = make(RECORDS)
    reader = ingot.open(path)
    view = reader[10:20][::2]
    assert view.rows == range(10, 20, 2)
    reader.close()
    assert len(view) == 5
    with pytest.raises(ingot.ClosedError):
        view[0]


@relaxed
@given(indices=st.lists(in_range))
def test_many_indices_give_many_records_in_their_order(reader, indices):
    expected = [RECORDS[k] for k in indices]
    assert reader[indices] == expected
    assert reader[tuple(indices)] == expected
    assert reader[np.array(indices, np.int64)] == expected
    assert reader[array.array("q", indices)] == expected
    assert list(reader.iter(indices)) == expected
    assert [bytes(record) for record in reader.read(indices)] == expected
    assert reader.lengths(indices).tolist() == [len(record) for record in expected]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arrays_of_every_integer_type_are_indices(reader, dtype):
    indices = np.array([5, 0, 99, 5], dtype)
    assert reader[indices] == [RECORDS[5], RECORDS[0], RECORDS[99], RECORDS[5]]
    assert reader[5:15][indices[:2]] == [RECORDS[10], RECORDS[5]]
    assert reader[indices[::-2]] == [RECORDS[5], RECORDS[0]]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8"])
def test_negative_numbers_in_arrays_count_from_the_end(reader, dtype):
    assert reader[np.array([-1, -100], dtype)] == [RECORDS[99], RECORDS[0]]


def test_ranges_and_empty_sequences_are_indices(reader):
    assert reader[range(90, 80, -3)] == [RECORDS[90], RECORDS[87], RECORDS[84], RECORDS[81]]
    assert reader[[]] == reader[()] == reader[range(0)] == reader[np.array([], np.int32)] == []
    assert len(reader.read([])) == 0
    assert reader.lengths([]).tolist() == []
    assert list(reader.iter([])) == []


class Unfit:
    """Has a length and an index, but neither items nor an order."""

    def __len__(self):
        return 1

    def __index__(self):
        return 3


WRONG = [
    1.0,
    "1",
    b"1",
    None,
    {1},
    frozenset({1}),
    {1: 2},
    [1.0],
    ["1"],
    [None],
    [[1]],
    np.array([1.0]),
    np.array(["1"]),
    np.zeros(100, bool),
    np.array([True]),
    np.float64(1),
]


@pytest.mark.parametrize("index", WRONG, ids=repr)
def test_wrong_types_of_index_are_rejected(reader, index):
    with pytest.raises(TypeError):
        reader[index]
    with pytest.raises(TypeError):
        reader[10:20][index]
    index = [None] if index is None else index  # None means all records.
    with pytest.raises(TypeError):
        reader.read(index)
    with pytest.raises(TypeError):
        reader.lengths(index)


def test_an_array_of_two_dimensions_is_rejected(reader):
    with pytest.raises(ValueError, match="one dimension, this one has 2"):
        reader[np.zeros((2, 2), np.int64)]


def test_an_index_that_also_has_a_length_does_no_harm(reader):
    with pytest.raises(TypeError, match="not Unfit"):
        reader[Unfit()]
    for wrong in (3, slice(3)):
        with pytest.raises(TypeError, match="expected a sequence or an array of indices, not"):
            reader.read(wrong)


def test_the_error_for_a_wrong_type_says_what_fits(reader):
    with pytest.raises(TypeError, match=r"integers, slices, or sequences .* not float$"):
        reader[1.5]
    with pytest.raises(TypeError, match=r"where\(mask\) selects its rows"):
        reader[np.zeros(100, bool)]


@pytest.mark.parametrize("index", [100, -101, 2**31, 2**63, -(2**63) - 1, 10**30])
def test_an_index_out_of_range_is_named(reader, index):
    message = f"{reader.path}: index {index} is out of range for 100 rows"
    with pytest.raises(IndexError) as caught:
        reader[index]
    assert str(caught.value) == message
    with pytest.raises(IndexError) as caught:
        reader[[0, index, 1]]
    assert str(caught.value) == message
    with pytest.raises(IndexError, match=rf"x.ingot: index {index} is out of range for 50 rows"):
        reader[:50][index]


def test_large_numbers_in_an_array_are_out_of_range(reader):
    for index in (2**63, 2**64 - 1):
        for records in (reader, reader[10:20]):
            with pytest.raises(IndexError, match=f"index {index} is out of range for"):
                records[np.array([index], np.uint64)]


def test_an_iterator_that_was_begun_outlives_the_reader(make):
    records = [b"%d" % k for k in range(20_000)]
    reader = ingot.open(make(records))
    begun = iter(reader)
    assert next(begun) == b"0"
    reader.close()
    assert list(begun) == records[1:]
    with pytest.raises(ingot.ClosedError):
        iter(reader)


def test_an_empty_file_has_no_record(make):
    with ingot.open(make([])) as reader:
        assert len(reader) == 0
        assert not reader
        assert list(reader) == list(reader[:]) == reader[[]] == []
        with pytest.raises(IndexError, match="index 0 is out of range for 0 rows"):
            reader[0]
        with pytest.raises(IndexError, match="index -1 is out of range for 0 rows"):
            reader[-1]
        assert reader.verify() == ingot.Verification(0, [])


def test_iteration_gives_every_record_in_order(reader):
    assert list(reader) == RECORDS
    assert list(reversed(reader)) == RECORDS[::-1]
    first, second = iter(reader), iter(reader)
    assert [next(first), next(second), next(first)] == [RECORDS[0], RECORDS[0], RECORDS[1]]
    assert sum(1 for _ in first) == 98


def test_a_sequence_knows_its_members(reader):
    assert RECORDS[43] in reader
    assert b"absent" not in reader
    assert reader.index(RECORDS[43]) == 43
    assert reader.count(b"") == RECORDS.count(b"") == 15
    assert RECORDS[43] in reader[40:50]
    assert reader[40:50].index(RECORDS[43]) == 3


@pytest.mark.parametrize("compression", ["zstd", None])
def test_files_of_many_pages_read_the_same_in_every_way(path, compression):
    records = many_pages(path, compression=compression)
    indices = random.Random(5).choices(range(-30_000, 30_000), k=20_000)
    with ingot.open(path) as reader:
        assert reader.stats().pages > 1
        assert list(reader) == records
        assert reader[indices] == [records[k] for k in indices]
        assert list(reader.iter(indices)) == [records[k] for k in indices]
        assert reader[29_999] == b"29999"
        assert [bytes(one) for one in reader.read(indices)] == [records[k] for k in indices]


def test_iter_takes_generators(reader):
    squares = (k * k for k in range(10))
    assert list(reader.iter(squares)) == [RECORDS[k * k] for k in range(10)]
    with pytest.raises(TypeError, match="not iterable"):
        reader.iter(3)
    assert list(reader.iter(None)) == RECORDS


def test_iter_takes_endless_generators_and_reads_ahead_within_limits(reader):
    taken = 0

    def endless():
        nonlocal taken
        for k in itertools.cycle(range(100)):
            taken += 1
            yield k

    records = list(itertools.islice(reader.iter(endless()), 1000))
    assert records == RECORDS * 10
    assert taken < 1000 + 8192


def test_iter_raises_for_a_bad_index_at_its_place(reader):
    for count in [0, 1, 63, 64, 65, 5000]:
        good = [k % 100 for k in range(count)]
        stream = reader.iter([*good, 100, 1, 2])
        assert list(itertools.islice(stream, count)) == [RECORDS[k] for k in good]
        with pytest.raises(IndexError, match="index 100 is out of range"):
            next(stream)
        assert list(stream) == []


def test_iter_raises_for_a_wrong_type_at_its_place(reader):
    stream = reader.iter([3, "4"])
    assert next(stream) == RECORDS[3]
    with pytest.raises(TypeError, match="not str"):
        next(stream)


def test_iter_passes_on_an_exception_of_its_generator(reader):
    def broken():
        yield from range(70)
        raise LookupError("the user's own")

    stream = reader.iter(broken())
    assert list(itertools.islice(stream, 70)) == RECORDS[:70]
    with pytest.raises(LookupError, match="the user's own"):
        next(stream)
    assert list(stream) == []


def test_a_stream_outlives_the_closing_of_its_reader(make):
    reader = ingot.open(make(RECORDS))
    stream = iter(reader)
    reader.close()
    assert list(stream) == RECORDS


def test_read_gives_views_on_one_block(reader):
    batch = reader.read([3, 1, 3])
    assert isinstance(batch, ingot.Batch)
    assert len(batch) == 3
    assert [record.tobytes() for record in batch] == [RECORDS[3], RECORDS[1], RECORDS[3]]
    assert batch.data.tobytes() == RECORDS[3] + RECORDS[1] + RECORDS[3]
    assert batch.offsets.tolist() == [0, 6, 8, 14]
    assert batch[-1].dtype == np.uint8
    assert np.shares_memory(batch[1], batch.data)
    assert [record.tobytes() for record in batch[1:]] == [RECORDS[1], RECORDS[3]]
    assert repr(batch) == "<ingot.Batch of 3 records, 14 bytes>"
    with pytest.raises(IndexError):
        batch[3]


def test_a_batch_keeps_its_memory_while_others_are_read(make):
    with ingot.open(make([bytes([k]) * 5000 for k in range(200)])) as reader:
        kept = [reader.read([k])[0] for k in range(200)]
        for _ in range(50):
            reader.read(range(100))
    assert [record[0] for record in kept] == list(range(200))
    assert all((record == record[0]).all() for record in kept)


def test_lengths_come_from_the_index(make):
    for compression in ["zstd", "lz4", None]:
        path = make(RECORDS, name=f"{compression}.ingot", compression=compression)
        with ingot.open(path) as reader:
            assert reader.lengths().tolist() == [len(record) for record in RECORDS]
            assert reader.lengths([5, -1]).tolist() == [len(RECORDS[5]), len(RECORDS[-1])]
            assert reader.lengths().dtype == np.int64


def test_metadata_and_path_are_known(reader):
    assert reader.metadata == {"made": "here"}
    assert reader.path.endswith("/x.ingot")


def test_stats_count_what_is_in_the_file(path):
    many_pages(path, compression=None)
    with ingot.open(path) as reader:
        stats = reader.stats()
    assert stats.rows == 30_000
    assert stats.file_bytes == path.stat().st_size
    assert stats.pages == 4
    assert 0 < stats.index_bytes < stats.file_bytes
    assert (stats.dictionaries, stats.dictionary_bytes) == (0, 0)
    assert stats.closed


def test_repr_names_the_file_and_its_size(make):
    path = make(RECORDS)
    reader = ingot.open(path)
    assert repr(reader) == f"<ingot.Reader {str(path)!r}, 100 records>"
    assert repr(reader[5:]) == f"<ingot.View of 95 records of {str(path)!r}>"
    reader.close()
    assert repr(reader) == f"<ingot.Reader {str(path)!r}, closed>"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_readers_and_views_pickle_small(path, protocol):
    records = many_pages(path)
    with ingot.open(path) as reader:
        assert reader[7] == b"7"
        for one, expected in [(reader, records), (reader[5:50:3], records[5:50:3])]:
            pickled = pickle.dumps(one, protocol)
            assert len(pickled) < 1024
            assert list(pickle.loads(pickled)) == expected  # noqa: S301
            assert list(copy.copy(one)) == expected


def test_a_partial_reader_pickles_as_one(path):
    with ingot.Writer(path) as writer:
        writer.append(b"one")
        writer.flush()
        with ingot.open(path, partial=True) as reader:
            assert list(pickle.loads(pickle.dumps(reader))) == [b"one"]  # noqa: S301


def test_a_pickled_reader_rejects_a_file_that_was_replaced(make):
    path = make(RECORDS)
    with ingot.open(path) as reader:
        pickled = pickle.dumps(reader)
    with ingot.Writer(path, overwrite=True) as writer:
        writer.extend(RECORDS)
    with pytest.raises(ingot.FormatError, match="the file was replaced") as caught:
        pickle.loads(pickled)  # noqa: S301
    assert caught.value.path == str(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickled)  # noqa: S301


def test_a_closed_reader_rejects_everything(make):
    reader = ingot.open(make(RECORDS))
    assert not reader.closed
    reader.close()
    reader.close()
    assert reader.closed
    for use in [
        lambda: reader[0],
        lambda: reader[[0]],
        lambda: reader[:5],
        lambda: len(reader),
        lambda: iter(reader),
        lambda: reader.iter([0]),
        lambda: reader.read([0]),
        reader.lengths,
        reader.stats,
        reader.verify,
        reader.refresh,
        lambda: reader.metadata,
        lambda: pickle.dumps(reader),
    ]:
        with pytest.raises(ingot.ClosedError, match="the reader is closed") as caught:
            use()
        assert caught.value.path == reader.path


def test_a_reader_is_a_context_manager(make):
    with ingot.open(make(RECORDS)) as reader:
        assert reader[0] == RECORDS[0]
    assert reader.closed


@pytest.mark.parametrize("compression", ["zstd", None])
def test_threads_may_read_at_once(path, compression):
    records = many_pages(path, compression=compression)
    wrong = []

    def work(seed):
        rng = random.Random(seed)
        for _ in range(30):
            indices = rng.choices(range(30_000), k=500)
            expected = [records[k] for k in indices]
            found = [
                reader[indices],
                list(reader.iter(indices)),
                [bytes(one) for one in reader.read(indices)],
                [reader[k] for k in indices],
            ]
            if any(one != expected for one in found):
                wrong.append(seed)

    with ingot.open(path) as reader:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_reader_may_be_closed_while_others_read(make):
    reader = ingot.open(make(RECORDS))
    started, outcomes = threading.Barrier(5), []

    def work():
        started.wait()
        try:
            while True:
                assert reader[[1, 2, 3]] == RECORDS[1:4]
        except ingot.ClosedError:
            outcomes.append("closed")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    reader.close()
    for thread in threads:
        thread.join()
    assert outcomes == ["closed"] * 4


def test_a_missing_file_is_the_builtin_error(path):
    with pytest.raises(FileNotFoundError) as caught:
        ingot.open(path)
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("path", [None, 3, [3]])
def test_a_path_of_the_wrong_type_is_rejected(path):
    with pytest.raises(TypeError):
        ingot.open(path)


def test_a_file_of_no_bytes_holds_no_committed_rows(path):
    path.touch()
    with pytest.raises(ingot.UnfinishedFileError, match="nothing is committed") as caught:
        ingot.open(path)
    assert (caught.value.path, caught.value.rows) == (str(path), 0)


@pytest.mark.parametrize(
    "content", [b"x", b"\x89PNG\r\n\x1a\n" + bytes(100), b"text " * 1000, bytes(4096)]
)
def test_a_file_of_another_kind_is_rejected(path, content):
    path.write_bytes(content)
    for partial in [False, True]:
        with pytest.raises(ingot.FormatError, match="not an Ingot file") as caught:
            ingot.open(path, partial=partial)
        assert caught.value.path == str(path)
    with pytest.raises(ingot.FormatError, match="not an Ingot file"):
        ingot.recover(path)
    assert path.read_bytes() == content


def test_a_file_of_an_unknown_format_is_rejected_with_a_short_list_of_formats(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"text")
    with pytest.raises(ingot.FormatError) as caught:
        ingot.open(path)
    reason, formats = str(caught.value).split("; ")
    assert reason.startswith(f"{path}: not an Ingot file")
    assert formats.startswith("ingot.open takes .ingot, ")
    assert len(formats) < 200


def test_a_later_version_of_the_format_is_rejected(make):
    path = make(RECORDS)
    content = bytearray(path.read_bytes())
    content[8:10] = (7).to_bytes(2, "little")
    path.write_bytes(content)
    with pytest.raises(ingot.UnsupportedVersionError, match="version 7 is not supported") as caught:
        ingot.open(path)
    assert (caught.value.path, caught.value.found, caught.value.supported) == (str(path), 7, 1)


def test_a_partial_reader_follows_a_writer(path):
    with ingot.Writer(path, sync=False) as writer, ingot.open(path, partial=True) as reader:
        assert len(reader) == 0
        for k in range(50):
            writer.append(b"%d" % k)
            assert reader.refresh() == 0
            writer.flush()
            assert len(reader) == k
            assert reader.refresh() == 1
            assert reader[-1] == b"%d" % k
        assert list(reader) == [b"%d" % k for k in range(50)]
        assert not reader.stats().closed
        assert reader.verify().ok
        writer.close()
        assert reader.refresh() == 0
        assert reader.stats().closed
        assert list(reader) == [b"%d" % k for k in range(50)]


def test_views_and_streams_of_a_partial_reader_stay_as_they_were(path):
    with ingot.Writer(path) as writer:
        writer.extend([b"0", b"1"])
        writer.flush()
        with ingot.open(path, partial=True) as reader:
            view, stream = reader[:], iter(reader)
            writer.append(b"2")
            writer.flush()
            assert reader.refresh() == 1
            assert list(view) == list(stream) == [b"0", b"1"]
            assert list(reader) == [b"0", b"1", b"2"]


def test_a_whole_file_opens_as_partial_too(make):
    with ingot.open(make(RECORDS), partial=True) as reader:
        assert list(reader) == RECORDS
        assert reader.refresh() == 0


def test_refresh_rejects_a_file_that_was_replaced(make):
    path = make(RECORDS)
    with ingot.open(path, partial=True) as reader:
        with ingot.Writer(path, overwrite=True) as writer:
            writer.append(b"new")
        with pytest.raises(ingot.FormatError, match="replaced by another one"):
            reader.refresh()
        assert list(reader) == RECORDS


@pytest.mark.parametrize("compression", ["zstd", "lz4", None])
def test_every_way_of_reading_gives_the_same_bytes(make, run_fault, compression):
    rng = random.Random(6)
    records = [rng.choice([rng.randbytes, bytes])(rng.randrange(9000)) for _ in range(5000)]
    path = make(records, compression=compression)
    digests = {}
    for way in ["mmap", "uring", "pread", ""]:
        outcome = run_fault("digest.py", path, env={"INGOT_IO": way})
        assert outcome.returncode == 0, outcome.stderr
        digests[way] = outcome.stdout
    assert len(digests["mmap"]) == 64
    assert len(set(digests.values())) == 1


def test_an_unknown_way_of_reading_is_rejected(make, run_fault):
    outcome = run_fault("digest.py", make(RECORDS), env={"INGOT_IO": "telepathy"})
    assert outcome.returncode == 1
    assert "ValueError" in outcome.stderr
    assert "INGOT_IO=telepathy: expected mmap, uring or pread" in outcome.stderr


@pytest.mark.parametrize("partial", [False, True])
def test_pipes_and_devices_are_rejected_at_once(tmp_path, partial):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in [pipe, "/dev/zero", "/dev/null"]:
        with pytest.raises(ingot.FormatError, match="not a regular file"):
            ingot.open(path, partial=partial)
        with pytest.raises(ingot.FormatError, match="not a regular file"):
            ingot.recover(path)
        for options in [{"append": True}, {"overwrite": True}]:
            with pytest.raises(ingot.FormatError, match="not a regular file"):
                ingot.Writer(path, **options)
