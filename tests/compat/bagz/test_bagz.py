"""Bagz's API over Ingot: its golden files, and what a user may call."""

import copy
import itertools
import json
import pickle
import shutil
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import pytest

import ingot
from ingot.compat import bagz
from ingot.errors import ClosedError, CorruptFileError
from tests.support import DATA

GOLDEN = DATA / "bagz"
MANIFEST = json.loads((GOLDEN / "manifest.json").read_text())
FILES = {name: said for name, said in MANIFEST["files"].items() if "records" in said}
SEPARATE = bagz.LimitsPlacement.SEPARATE
INTERLEAVED = bagz.ShardingLayout.INTERLEAVED
OPTIONS = {
    "sep.bag": {"limits_placement": SEPARATE},
    "sep.bagz": {"limits_placement": SEPARATE},
    "crash.bag": {"limits_placement": SEPARATE},
    "forced_zstd.bag": {"compression": bagz.CompressionZstd()},
    "dict.bagz": {"compression": bagz.CompressionZstd(dictionary=MANIFEST["dictionary_utf8"])},
}
RECORDS = [b"%d " % k * (k % 40) for k in range(300)]


@pytest.fixture(params=["x.bag", "x.bagz"])
def path(request, tmp_path):
    with bagz.Writer(tmp_path / request.param) as writer:
        for record in RECORDS:
            writer.write(record)
    return tmp_path / request.param


def said_of(records):
    return [[len(record), sha256(record).hexdigest()] for record in records]


def write_shards(folder, name, shards):
    for k, records in enumerate(shards):
        with bagz.Writer(folder / name.format(k, len(shards))) as writer:
            for record in records:
                writer.write(record)


@pytest.mark.parametrize("name", FILES)
def test_golden_bags_are_read(name):
    reader = bagz.Reader(GOLDEN / name, bagz.Reader.Options(**OPTIONS.get(name, {})))
    assert len(reader) == FILES[name]["n"]
    assert said_of(reader.read()) == FILES[name]["records"]
    assert said_of(reader) == FILES[name]["records"]
    assert said_of(reader[k] for k in range(len(reader))) == FILES[name]["records"]


@pytest.mark.parametrize(
    ("spec", "layout"),
    [
        ("conc@4.bagz", bagz.ShardingLayout.CONCATENATED),
        ("conc@*.bagz", bagz.ShardingLayout.CONCATENATED),
        ("inter@3.bag", bagz.ShardingLayout.CONCATENATED),
        ("inter@3.bag", INTERLEAVED),
    ],
)
def test_golden_shards_are_one_sequence(spec, layout):
    reader = bagz.Reader(GOLDEN / spec, bagz.Reader.Options(sharding_layout=layout))
    name = f"{spec} {layout.name}" if spec.startswith("inter") else spec
    expected = [text.encode() for text in MANIFEST[name]]
    assert reader.read() == list(reader) == expected
    assert reader[::-2].read() == list(reader[::-2]) == expected[::-2]
    indices = [16, 0, 5, 5, 11]
    assert reader.read_indices(indices) == [expected[k] for k in indices]
    assert list(reader.read_indices_iter(indices)) == [expected[k] for k in indices]
    assert reader.index(expected[12]) == 12


@pytest.mark.parametrize("name", ["bad_short.bag", "bad_offset.bag", "bad_align.bag"])
def test_invalid_bags_are_rejected(name):
    with pytest.raises(CorruptFileError, match=name):
        bagz.Reader(GOLDEN / name)


def test_limits_that_go_back_are_rejected_where_they_are_read():
    with pytest.raises(CorruptFileError, match="its limits are"):
        bagz.Reader(GOLDEN / "bad_order.bag").read()


def test_a_record_that_cannot_be_decompressed_is_never_empty():
    reader = bagz.Reader(GOLDEN / "bad_zstd_record2.bagz")
    good = bagz.Reader(GOLDEN / "comp.bagz").read()
    assert reader[1] == good[1]
    assert reader[3:].read() == good[3:]
    stream, taken = iter(reader), []
    with pytest.raises(CorruptFileError, match="record 2"):
        taken.extend(stream)
    for read in (
        reader.read,
        lambda: reader[2],
        lambda: reader.read_indices([1, 2, 3]),
        lambda: reader.read_range(0, 5),
        lambda: reader.index(b"nowhere" * 40),
        lambda: bagz.Index(reader),
    ):
        with pytest.raises(ValueError, match="bad_zstd_record2"):
            read()


def test_a_bag_with_a_dictionary_says_what_it_takes():
    message = r"record 1: .*CompressionZstd\(dictionary=\.\.\.\)"
    with pytest.raises(CorruptFileError, match=message):
        bagz.Reader(GOLDEN / "dict.bagz").read()
    with pytest.raises(CorruptFileError, match=message):
        list(ingot.open(GOLDEN / "dict.bagz"))


@pytest.mark.parametrize("dictionary", ["words and the like ", bytes(range(256))])
def test_dictionaries_are_text_or_bytes(tmp_path, dictionary):
    raw = dictionary.encode() if isinstance(dictionary, str) else dictionary
    records = [raw[k:] + b"%d" % k for k in range(len(raw))]
    compression = bagz.CompressionZstd(5, dictionary)
    with bagz.Writer(tmp_path / "x.bagz", bagz.Writer.Options(compression=compression)) as writer:
        for record in records:
            writer.write(record)
    reader = bagz.Reader(tmp_path / "x.bagz", bagz.Reader.Options(compression=compression))
    assert reader.read() == records
    assert pickle.loads(pickle.dumps(reader))[3] == records[3]  # noqa: S301


def test_readers_are_sequences(path):
    reader = bagz.Reader(path)
    assert isinstance(reader, Sequence)
    assert (len(reader), bool(reader), bool(reader[:0])) == (300, True, False)
    assert reader[7] == reader[np.int64(7)] == reader[-293] == RECORDS[7]
    for wrong in (300, -301, 2**70):
        with pytest.raises(IndexError, match="out of range"):
            reader[wrong]
    for wrong in (1.0, "1", None, [1]):
        with pytest.raises(TypeError):
            reader[wrong]
    assert reader.file_spec == str(path)
    assert reader.options.max_parallelism == 100
    assert reader.approximate_bytes_per_record() > 0


def test_slices_are_lazy_readers_of_any_step(path):
    reader = bagz.Reader(path)
    steps = [slice(None), slice(5, 290, 7), slice(None, None, -1), slice(20, 3, -4), slice(9, 2)]
    for first, second in itertools.product(steps, repeat=2):
        view, expected = reader[first][second], RECORDS[first][second]
        assert isinstance(view, bagz.Reader)
        assert (len(view), view.read(), list(view)) == (len(expected), expected, expected)
        assert list(reversed(view)) == reversed(view).read() == expected[::-1]
        if expected:
            assert (view[0], view[-1]) == (expected[0], expected[-1])
            assert view.read_indices(np.array([-1, 0])) == [expected[-1], expected[0]]
    with pytest.raises(IndexError, match=r"index 3 out of range \[0, 3\)"):
        reader[2:5][3]
    with pytest.raises(IndexError, match=r"index -4 out of range \[0, 3\)"):
        reader[2:5].read_indices([0, -4])


def test_batches_and_ranges_are_lists(path):
    reader = bagz.Reader(path)
    wanted = [5, 299, 0, 5]
    expected = [RECORDS[k] for k in wanted]
    for indices in (wanted, tuple(wanted), np.array(wanted), np.array(wanted, np.uint64)):
        assert reader.read_indices(indices) == expected
        assert reader[::-1].read_indices(indices) == [RECORDS[299 - k] for k in wanted]
    assert reader.read_indices(slice(3, 50, 9)) == RECORDS[3:50:9]
    assert reader.read_indices(range(4)) == RECORDS[:4]
    assert reader.read_indices([]) == reader[1:].read_indices([]) == []
    assert reader.read_range(298, 2) == list(reader.read_range_iter(298, 2)) == RECORDS[298:]
    assert reader.read_range(300, 0) == []
    for start, count in ((299, 2), (-1, 1), (301, 0), (3, -1)):
        with pytest.raises(IndexError, match="out of range"):
            reader.read_range(start, count)
        with pytest.raises(IndexError, match="out of range"):
            reader.read_range_iter(start, count)
    for view in (reader, reader[1:]):
        with pytest.raises(IndexError):
            view.read_indices([0, 300])
        for wrong in ({1, 2}, "12", b"12", [1.5], 5, np.array([0.5])):
            with pytest.raises(TypeError):
                view.read_indices(wrong)
        for wrong in (np.array([[1]]), np.array(1)):
            with pytest.raises(ValueError, match="1D"):
                view.read_indices(wrong)


def test_iterators_take_indices_without_end_and_pass_errors_on(path):
    reader = bagz.Reader(path)
    cycle = reader.read_indices_iter(itertools.cycle([3, 1]), read_ahead=2)
    assert isinstance(cycle, bagz.ReaderIterator)
    assert iter(cycle) is cycle
    assert list(itertools.islice(cycle, 3)) == [RECORDS[3], RECORDS[1], RECORDS[3]]

    def failing():
        yield 7
        raise KeyError("seven")

    for view in (reader, reader[::-1]):
        stream = view.read_indices_iter(failing())
        assert next(stream) == view[7]
        with pytest.raises(KeyError, match="seven"):
            next(stream)
        with pytest.raises(TypeError):
            view.read_indices_iter(5)
    with pytest.raises(ValueError, match="read_ahead"):
        reader.read_range_iter(0, 1, read_ahead=-1)


def test_records_are_found_by_their_bytes(tmp_path):
    records = [b"a", b"b", b"", b"a", b"cc"] * 5000
    with bagz.Writer(tmp_path / "x.bag") as writer:
        for record in records:
            writer.write(record)
    reader = bagz.Reader(tmp_path / "x.bag")
    assert reader.index(b"a") == 0
    assert reader.index(b"a", 1) == 3
    assert reader.index(b"a", 1, 4) == 3
    assert reader.index(b"cc", 24_996) == 24_999
    assert reader[::-1].index(b"a") == 1
    for wrong in ((b"a", 1, 3), (b"d",), (b"a", 30_000), (b"a", 0, 0)):
        with pytest.raises(ValueError, match="value is not in"):
            reader.index(*wrong)
    assert (reader.count(b"a"), reader.count(b""), reader.count(b"x")) == (10_000, 5000, 0)
    assert b"cc" in reader
    assert b"c" not in reader
    with pytest.raises(TypeError, match="bytes"):
        "a" in reader  # noqa: B015


def test_indices_map_records_back(path):
    reader = bagz.Reader(f"{path},{path}")
    first, every = bagz.Index(reader), bagz.MultiIndex(reader)
    assert first[RECORDS[7]] == first.get(RECORDS[7].decode()) == 7
    assert every[RECORDS[7]] == every.get(RECORDS[7].decode()) == [7, 307]
    assert every[b""] == [k for k in range(600) if not RECORDS[k % 300]]
    assert len(first) == len(every) == len(set(RECORDS))
    assert (first.get(b"x"), every.get(b"x"), every.get(b"x", 5)) == (None, None, 5)
    for index in (first, every):
        assert b"" in index
        assert "x" not in index
        with pytest.raises(KeyError):
            index[b"x"]
        with pytest.raises(TypeError, match="str or bytes"):
            index.get(3)


def test_readers_and_their_slices_pickle(path):
    reader = bagz.Reader(path)
    for view in (reader, reader[5:90:3], reader[::-1], reader[3:3]):
        for other in (pickle.loads(pickle.dumps(view)), copy.copy(view), copy.deepcopy(view)):  # noqa: S301
            assert other.read() == view.read()
            assert other.__getstate__()[2:] == view.__getstate__()[2:]
    pickled = pickle.dumps(reader)
    with bagz.Writer(path) as writer:
        writer.write(b"fewer")
    with pytest.raises(ingot.errors.FormatError, match="replaced"):
        pickle.loads(pickled)  # noqa: S301


def test_each_member_of_a_list_has_its_own_compression_and_limits(tmp_path):
    for name in ("a.bag", "b.bagz"):
        for placement in bagz.LimitsPlacement:
            options = bagz.Writer.Options(placement)
            with bagz.Writer(tmp_path / f"{placement.name}-{name}", options) as writer:
                writer.write(name)
    for placement in bagz.LimitsPlacement:
        spec = ",".join(f"posix:{tmp_path}/{placement.name}-{name}" for name in ("a.bag", "b.bagz"))
        options = bagz.Reader.Options(limits_placement=placement)
        assert bagz.Reader(spec, options).read() == [b"a.bag", b"b.bagz"]


def test_shards_are_named_by_their_number_or_a_star(tmp_path):
    shards = [[b"%d/%d" % (k, j) for j in range(3 - k // 2)] for k in range(4)]
    write_shards(tmp_path, "s-{:05}-of-{:05}.bagz", shards)
    write_shards(tmp_path, "s-{:05}-of-{:05}.bagz", shards[:2])
    joined = list(itertools.chain.from_iterable(shards))
    assert bagz.Reader(tmp_path / "s@4.bagz").read() == joined
    assert bagz.Reader(tmp_path / "s@*.bagz").read() == joined
    assert bagz.Reader(tmp_path / "s@2.bagz").read() == joined[:6]
    spec = f"{tmp_path}/s@*.bagz,{tmp_path}/s@2.bagz,"
    assert bagz.Reader(spec).read() == joined + joined[:6]
    turns = bagz.Reader(tmp_path / "s@4.bagz", bagz.Reader.Options(INTERLEAVED))
    assert turns.read() == [b"%d/%d" % (k, j) for j in range(3) for k in range(4) if k < 2 or j < 2]
    assert turns[-1] == b"1/2"
    for wrong in ("s@3.bagz", "s@0.bagz", "no@*.bagz", "s*.bagz", "gs:x.bag", "", ","):
        with pytest.raises(FileNotFoundError):
            bagz.Reader(str(tmp_path / wrong) if "x" not in wrong and wrong[1:] else wrong)


def test_shards_that_cannot_take_turns_are_rejected(tmp_path):
    for name, count in (("a", 3), ("b", 1), ("c", 0)):
        with bagz.Writer(tmp_path / f"{name}.bag") as writer:
            for _ in range(count):
                writer.write(name)
    options = bagz.Reader.Options(INTERLEAVED)
    for names, words in (("ab", "within 1"), ("ba", "non-increasing"), ("cb", "non-increasing")):
        with pytest.raises(ValueError, match=words):
            bagz.Reader(",".join(str(tmp_path / f"{name}.bag") for name in names), options)
    assert bagz.Reader(f"{tmp_path}/b.bag,{tmp_path}/c.bag", options).read() == [b"b"]


def test_a_bag_is_there_from_the_start_and_whole_when_it_is_closed(tmp_path):
    path = tmp_path / "x.bag"
    writer = bagz.Writer(path)
    writer.write("text")
    writer.write(bytearray(b"\x00\x01"))
    writer.flush()
    assert path.stat().st_size == 6
    writer.close()
    writer.close()
    assert bagz.Reader(path).read() == [b"text", b"\x00\x01"]
    for call in (writer.flush, lambda: writer.write(b"x")):
        with pytest.raises(ClosedError):
            call()
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.bag"]


def test_an_exception_inside_with_closes_the_bag(tmp_path):
    path = tmp_path / "x.bag"

    def fail():
        with bagz.Writer(path) as writer:
            writer.write(b"kept")
            writer.write(5)

    with pytest.raises(TypeError):
        fail()
    assert bagz.Reader(path).read() == [b"kept"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.bag"]


def test_separate_limits_show_what_was_flushed(tmp_path):
    path, read = tmp_path / "x.bagz", bagz.Reader.Options(limits_placement=SEPARATE)
    with bagz.Writer(path, bagz.Writer.Options(SEPARATE)) as writer:
        assert bagz.Reader(path, read).read() == []
        writer.write(b"one")
        writer.flush()
        writer.write(b"two")
        assert bagz.Reader(path, read).read() == [b"one"]
        with pytest.raises(TypeError), writer:
            writer.write(5)
    assert bagz.Reader(path, read).read() == [b"one", b"two"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["limits.x.bagz", "x.bagz"]
    assert list(ingot.open(tmp_path)) == [b"one", b"two"]


@pytest.mark.parametrize("placement", bagz.LimitsPlacement)
def test_a_writer_that_is_never_closed_keeps_its_records_and_says_so(tmp_path, placement):
    path = tmp_path / "x.bag"
    writer = bagz.Writer(path, bagz.Writer.Options(placement))
    writer.write(b"kept")
    with pytest.warns(
        UserWarning, match=r"x\.bag: the writer was never closed; its 1 record is there"
    ):
        del writer
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["limits.x.bag", "x.bag"]
    assert bagz.Reader(path, bagz.Reader.Options(limits_placement=SEPARATE)).read() == [b"kept"]
    with pytest.raises(ValueError, match=r"x\.bag"):
        bagz.Reader(path)


def test_an_unsupported_value_is_a_value_error(tmp_path):
    for wrong in (tmp_path, tmp_path / "missing" / "x.bag"):
        with pytest.raises(ValueError, match=str(tmp_path)) as caught:
            bagz.Writer(wrong)
        assert isinstance(caught.value, OSError)
    with bagz.Writer(tmp_path / "x.bag"), pytest.raises(ValueError, match="another writer"):
        bagz.Writer(tmp_path / "x.bag")


def test_options_say_what_they_are():
    options = bagz.Reader.Options()
    assert (options.sharding_layout, options.limits_placement) == (
        bagz.ShardingLayout.CONCATENATED,
        bagz.LimitsPlacement.TAIL,
    )
    assert options.limits_storage is bagz.LimitsStorage.ON_DISK
    assert isinstance(options.compression, bagz.CompressionAutoDetect)
    options.compression = bagz.CompressionZstd(3, "x")
    other = pickle.loads(pickle.dumps(options))  # noqa: S301
    assert (other.compression.level, other.compression.dictionary) == (3, "x")
    assert repr(bagz.LimitsPlacement(1)) == "LimitsPlacement.SEPARATE"
    for wrong in ({"compression": None}, {"compression": "zstd"}):
        with pytest.raises(TypeError):
            bagz.Reader.Options(**wrong)
        with pytest.raises(TypeError):
            bagz.Writer.Options(**wrong)
    for wrong in ({"level": 1.5}, {"dictionary": 5}):
        with pytest.raises(TypeError):
            bagz.CompressionZstd(**wrong)
    with pytest.raises(ValueError, match="max_parallelism"):
        bagz.Reader(GOLDEN / "one.bag", bagz.Reader.Options(max_parallelism=-1))


def test_compression_follows_the_suffix_unless_it_is_given(tmp_path):
    plain = shutil.copy(GOLDEN / "plain.bag", tmp_path / "plain.bagz")
    with pytest.raises(CorruptFileError):
        bagz.Reader(plain).read()
    options = bagz.Reader.Options(compression=bagz.CompressionNone())
    assert said_of(bagz.Reader(plain, options)) == FILES["plain.bag"]["records"]


@pytest.mark.parametrize("rest", [b"", b"\0" * 600])
def test_a_bag_whose_first_record_begins_like_an_ingot_file_is_a_bag(tmp_path, rest):
    records = [b"\x89INGOT\r\n" + rest, b"\0" * 100]
    with bagz.Writer(tmp_path / "x.bag") as writer:
        for record in records:
            writer.write(record)
    assert list(ingot.open(tmp_path / "x.bag")) == records
