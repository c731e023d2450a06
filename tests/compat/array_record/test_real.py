"""ArrayRecord's files and API beside the real package."""

import logging
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from ingot.compat.array_record import array_record_data_source as our_source
from ingot.compat.array_record import array_record_module as our_module
from tests.compat.array_record.riegeli import varint

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from array_record.python import array_record_data_source as real_source
    from array_record.python import array_record_module as real_module

EACH = settings(max_examples=60, deadline=None)

codecs = st.one_of(
    st.just(""),
    st.just("uncompressed"),
    st.just("snappy"),
    st.integers(-5, 9).map("zstd:{}".format),
    st.integers(0, 9).map("brotli:{}".format),
    st.tuples(st.integers(1, 6), st.integers(10, 24)).map(
        lambda n: "zstd:{},window_log:{}".format(*n)
    ),
    st.tuples(st.integers(1, 6), st.integers(10, 27)).map(
        lambda n: "brotli:{},window_log:{}".format(*n)
    ),
)
layouts = st.tuples(st.integers(1, 50), st.booleans()).map(
    lambda n: f"group_size:{n[0]}" + ",pad_to_block_boundary:true" * n[1]
)
record_sets = st.tuples(
    st.integers(0, 120), st.sampled_from([0, 10, 600, 5000, 70_000]), st.integers(0, 2**32)
)


transpositions = st.sampled_from(
    ["", ",transpose", ",transpose,transpose_bucket_size:1", ",transpose,transpose_bucket_size:10k"]
)


def message_of(rng, depth=0):
    """Return a protocol buffer with fields of every kind, some of which hold others."""
    message = b""
    for _ in range(rng.randrange(6)):
        number = rng.choice([1, 2, 3, 15, 16, 5000, 2**29 - 1])
        kind = rng.choice([0, 1, 2, 2, 2, 3, 5])
        message += varint(number << 3 | kind)
        if kind == 0:
            message += varint(rng.choice([0, 3, 4, 300, 2**63, rng.randrange(2**32)]))
        elif kind in (1, 5):
            message += rng.randbytes(8 if kind == 1 else 4)
        elif kind == 3:
            message += (
                message_of(rng, depth + 1) + varint(number << 3 | 4)
                if depth < 4
                else varint(number << 3 | 4)
            )
        else:
            inner = message_of(rng, depth + 1) if depth < 4 else b"the innermost"
            message += varint(len(inner)) + inner
    return message


def records_of(count, longest, seed):
    """Return repetitive, random and empty records."""
    rng = random.Random(seed)
    if longest > 10_000:
        count //= 8
    records = [message_of(rng) for _ in range(count // 3)]
    while len(records) < count:
        length = rng.choice([0, longest, rng.randrange(longest + 1)])
        words = rng.randbytes(rng.choice([1, 7, 600]))
        records.append(rng.randbytes(length) if rng.random() < 0.4 else (words * length)[:length])
    rng.shuffle(records)
    return records


def write(module, path, records, options):
    writer = module.ArrayRecordWriter(str(path), options)
    for record in records:
        writer.write(record)
    writer.close()


def read_all_ways(module, path, count):
    """Return the records of a file as each way to read it gives them."""
    reader = module.ArrayRecordReader(str(path), "max_parallelism:0")
    assert reader.num_records() == count
    ways = [reader.read_all(), [reader.read() for _ in range(count)]]
    order = random.Random(count).sample(range(count), count)
    back = dict(zip(order, reader.read(order), strict=True))
    ways.append([back[k] for k in range(count)])
    ways.append([reader.read(k, min(k + 7, count)) for k in range(0, count, 7)])
    ways[-1] = [record for part in ways[-1] for record in part]
    reader.close()
    return ways


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@EACH
@given(records=record_sets, codec=codecs, layout=layouts, transpose=transpositions)
def test_files_of_the_real_package_are_read_here(folder, records, codec, layout, transpose):
    records = records_of(*records)
    path = folder / "real.array_record"
    write(real_module, path, records, f"{layout},{codec}{transpose}")
    assert read_all_ways(our_module, path, len(records)) == [records] * 4
    assert list(our_source.ArrayRecordDataSource(path)) == records
    reader = ingot.open(path)
    assert list(reader) == records
    assert reader.verify().ok
    options = real_module.ArrayRecordReader(str(path)).writer_options_string()
    assert our_module.ArrayRecordReader(path).writer_options_string() == options


@EACH
@given(records=record_sets, codec=codecs, layout=layouts, transpose=transpositions)
def test_files_written_here_are_read_by_the_real_package(folder, records, codec, layout, transpose):
    records = records_of(*records)
    path = folder / "ours.array_record"
    write(our_module, path, records, f"{layout},{codec}{transpose}")
    assert read_all_ways(real_module, path, len(records)) == [records] * 4
    if records:
        assert list(real_source.ArrayRecordDataSource(str(path))) == records


@EACH
@given(records=record_sets, layout=layouts)
def test_both_write_the_same_bytes(folder, records, layout):
    assert_same_bytes(folder, records_of(*records), f"{layout},uncompressed")


# The encoder in the real package sometimes finds other matches at levels 3 and 4,
# and where a chunk has more than one block.
short_record_sets = st.tuples(
    st.integers(0, 120), st.sampled_from([0, 10, 600, 2500]), st.integers(0, 2**32)
)


@EACH
@given(
    records=short_record_sets,
    layout=layouts,
    level=st.sampled_from([-5, -1, 1, 2, 5, 7, 9]),
    window=st.sampled_from(["", ",window_log:16", ",window_log:24"]),
)
def test_both_compress_to_the_same_bytes(folder, records, layout, level, window):
    assert_same_bytes(folder, records_of(*records), f"{layout},zstd:{level}{window}")


def assert_same_bytes(folder, records, options):
    paths = folder / "a.array_record", folder / "b.array_record"
    for module, path in zip((real_module, our_module), paths, strict=True):
        write(module, path, records, options)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("depth", [1, 99, 100, 101, 130, 5000])
@pytest.mark.parametrize("kind", ["messages", "groups"])
def test_deep_messages_go_both_ways(tmp_path, depth, kind):
    record = b"\x08\x01"
    for _ in range(depth):
        inner = b"\x12" + varint(len(record)) + record
        record = inner if kind == "messages" else b"\x13" + record + b"\x14"
    for writer, reader in ((real_module, our_module), (our_module, real_module)):
        write(writer, tmp_path / "deep", [record, b"", record[:-1]], "transpose,group_size:3")
        found = reader.ArrayRecordReader(str(tmp_path / "deep")).read_all()
        assert found == [record, b"", record[:-1]]


OPTIONS = [
    "",
    ",",
    "default",
    "group_size:1,,zstd",
    "group_size: 2",
    "group_size:0",
    "group_size:-1",
    "group_size",
    "group_size:x",
    "group_size:1,group_size:1",
    "group_size:2147483648",
    "zstd:23",
    "zstd:-131072",
    "brotli:12",
    "brotli",
    "snappy:1",
    "snappy:3",
    "uncompressed:1",
    "zstd,brotli",
    "uncompressed,snappy",
    "window_log:9",
    "window_log:31",
    "brotli,window_log:31",
    "window_log:auto",
    "window_log:20,uncompressed",
    "snappy,window_log:20",
    "window_log:auto,snappy",
    "transpose:maybe",
    "transpose_bucket_size:0",
    "transpose_bucket_size:1k",
    "transpose_bucket_size:0.5k",
    "transpose_bucket_size:1e3",
    "pad_to_block_boundary:true",
    "max_parallelism:0",
    "max_parallelism:auto",
    "saturation_delay_ms:5",
    "zstd,default",
    "unknown",
    "Group_Size:1",
]
READER_OPTIONS = [
    "",
    "readahead_buffer_size:16M",
    "readahead_buffer_size:2G",
    "readahead_buffer_size:-1",
    "readahead_buffer_size:x",
    "readahead_buffer_size",
    "max_parallelism:0",
    "max_parallelism:-1",
    "max_parallelism:auto",
    "index_storage_option:in_memory",
    "index_storage_option:offloaded",
    "index_storage_option:offloaded,footer_prefetch_bytes:0",
    "index_storage_option:elsewhere",
    "footer_prefetch_bytes:1M",
    "unknown:1",
]


def outcome(call):
    """Return what a call returns, or the builtin exception that it raises, and its message."""
    try:
        return call()
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError) as error:
        return error


def agree(real, ours):
    """Return whether two outcomes are the same to one who catches the real exception."""
    if isinstance(real, Exception):
        return isinstance(ours, type(real))
    return real == ours


@pytest.mark.parametrize("options", OPTIONS)
def test_both_take_and_reject_the_same_options_of_a_writer(tmp_path, options):
    texts = []
    for module in (real_module, our_module):
        path = tmp_path / f"{module.__name__}.array_record"

        def write_and_ask(module=module, path=path):
            write(module, path, [], options)
            return module.ArrayRecordReader(str(path)).writer_options_string()

        texts.append(outcome(write_and_ask))
    assert repr(texts[0]) == repr(texts[1])


@pytest.mark.parametrize("options", READER_OPTIONS)
def test_both_take_and_reject_the_same_options_of_a_reader(folder, options):
    path = folder / "options.array_record"
    write(our_module, path, [b"a", b"b"], "")
    found = [
        outcome(lambda module=module: module.ArrayRecordReader(str(path), options).read_all())
        for module in (real_module, our_module)
    ]
    assert repr(found[0]) == repr(found[1])


N = 25


@pytest.fixture(scope="module")
def files(folder):
    """Return paths to files in all the states that files get into."""
    paths = {name: folder / f"{name}.array_record" for name in ("good", "empty", "bad", "missing")}
    records = [b"%d" % k * (k + 1) for k in range(N)]
    write(real_module, paths["good"], records, "group_size:3,uncompressed")
    write(real_module, paths["empty"], [], "")
    content = bytearray(paths["good"].read_bytes())
    content[content.index(records[4])] ^= 1
    paths["bad"].write_bytes(content)
    paths["short"] = folder / "short.array_record"
    paths["short"].write_bytes(content[:100])
    return {name: str(path) for name, path in paths.items()}


READS = {
    "read": lambda reader: reader.read(),
    "read twice": lambda reader: (reader.read(), reader.read(), reader.record_index()),
    "read all by itself": lambda reader: [reader.read() for _ in range(N)],
    "read beyond the end": lambda reader: [reader.read() for _ in range(N + 1)],
    "read_all": lambda reader: reader.read_all(),
    "no indices": lambda reader: reader.read([]),
    "indices": lambda reader: reader.read([3, 1, 1, 24]),
    "a tuple": lambda reader: reader.read((3, 1)),
    "a range of indices": lambda reader: reader.read(range(5)),
    "an array": lambda reader: reader.read(np.array([9, 2])),
    "an unsigned array": lambda reader: reader.read(np.array([9, 2], np.uint8)),
    "booleans": lambda reader: reader.read([True, False]),
    "numpy integers": lambda reader: reader.read([np.int64(3), np.uint8(2)]),
    "index 0": lambda reader: reader.read([0]),
    "index 9": lambda reader: reader.read([9]),
    "index N": lambda reader: reader.read([N]),
    "index beyond N": lambda reader: reader.read([0, 99, 100]),
    "index 2^40": lambda reader: reader.read([2**40]),
    "index -1": lambda reader: reader.read([-1]),
    "index 1.0": lambda reader: reader.read([1.0]),
    "a set": lambda reader: reader.read({1}),
    "a dict": lambda reader: reader.read({1: 2}),
    "an iterator": lambda reader: reader.read(iter([1])),
    "text": lambda reader: reader.read("12"),
    "bytes": lambda reader: reader.read(b"12"),
    "an integer": lambda reader: reader.read(1),
    "None": lambda reader: reader.read(None),
    "floats": lambda reader: reader.read(np.array([1.0])),
    "two dimensions": lambda reader: reader.read(np.array([[1]])),
    "a range": lambda reader: reader.read(3, 7),
    "the whole range": lambda reader: reader.read(0, N),
    "a range from the end": lambda reader: reader.read(-3, -1),
    "a range to the end": lambda reader: reader.read(-3, N),
    "a range over the end": lambda reader: reader.read(0, N + 1),
    "a range beyond the end": lambda reader: reader.read(N + 5, N + 6),
    "an empty range": lambda reader: reader.read(5, 5),
    "a range backwards": lambda reader: reader.read(5, 3),
    "a range before the front": lambda reader: reader.read(-N - 1, 3),
    "a range of floats": lambda reader: reader.read(1.0, 2),
    "three arguments": lambda reader: reader.read(1, 2, 3),
    "by name": lambda reader: reader.read(indices=[1]),
    "seek": lambda reader: (reader.seek(20), reader.record_index(), reader.read()),
    "seek to the end": lambda reader: (reader.seek(N), reader.record_index()),
    "seek beyond the end": lambda reader: (reader.seek(N + 9), reader.record_index()),
    "seek backwards": lambda reader: (reader.seek(-1), reader.record_index()),
    "seek to 1.0": lambda reader: reader.seek(1.0),
    "state": lambda reader: (reader.ok(), reader.is_open(), reader.num_records()),
    "options": lambda reader: reader.writer_options_string(),
    "place": lambda reader: reader.record_index(),
    "close": lambda reader: reader.close(),
    "length": len,
    "iteration": list,
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("state", ["good", "empty", "bad", "missing", "short", "closed"])
def test_both_readers_behave_the_same(files, state, read):
    path = files.get(state, files["good"])
    found = []
    for module in (real_module, our_module):
        reader = module.ArrayRecordReader(path, "max_parallelism:0")
        if state == "closed":
            reader.close()
        first = outcome(lambda reader=reader: READS[read](reader))
        after = (reader.ok(), reader.is_open(), reader.num_records())
        again = outcome(lambda reader=reader: reader.read([9]))
        found.append((first, after, again))
    (real, real_after, real_again), (ours, our_after, our_again) = found
    assert real_after == our_after
    for of_real, of_ours in ((real, ours), (real_again, our_again)):
        if state == "empty" and isinstance(of_real, list) and b"" in of_real:
            # The real package returns records that an empty file does not have.
            assert isinstance(of_ours, RuntimeError)
        else:
            assert agree(of_real, of_ours)
            assert words(of_real) in str(of_ours)


def test_a_file_cut_after_its_first_block_is_not_taken_for_an_empty_one(files, tmp_path):
    whole = Path(files["good"]).read_bytes()
    path = tmp_path / "cut.array_record"
    path.write_bytes(whole[:65_536])
    real = real_module.ArrayRecordReader(str(path))
    assert (real.read_all(), real.read([9])) == ([], [b""])
    ours = our_module.ArrayRecordReader(str(path))
    for call in (ours.read_all, ours.read, lambda: ours.read([9]), ours.close):
        with pytest.raises(RuntimeError, match=r"Corrupted Riegeli/records file: .* truncated"):
            call()


def words(error):
    """Return the words of the real error that programs match."""
    text = str(error) if isinstance(error, RuntimeError | IndexError) else ""
    for known in ("chunk data hash mismatch", "Failed to read RiegeliPostscript"):
        if known in text:
            return known
    return text


UNLIKE = {"text", "a number", "None"}
"""What the real writer tells of before it tells that there is no file."""

WRITES = {
    "write": lambda writer: writer.write(b"a"),
    "numpy bytes": lambda writer: writer.write(np.bytes_(b"a")),
    "text": lambda writer: writer.write("a"),
    "a number": lambda writer: writer.write(5),
    "None": lambda writer: writer.write(None),
    "nothing": lambda writer: writer.write(),
    "close": lambda writer: writer.close(),
    "close twice": lambda writer: (writer.close(), writer.close()),
    "write after close": lambda writer: (writer.close(), writer.write(b"a")),
    "state": lambda writer: (writer.ok(), writer.is_open()),
    "state after close": lambda writer: (writer.close(), writer.ok(), writer.is_open()),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("state", ["good", "no folder", "a folder"])
def test_both_writers_behave_the_same(tmp_path, state, write):
    names = {"good": "x", "no folder": "no/x", "a folder": ""}
    found = []
    for module in (real_module, our_module):
        writer = module.ArrayRecordWriter(str(tmp_path / names[state]))
        first = outcome(lambda writer=writer: WRITES[write](writer))
        after = writer.ok(), writer.is_open()
        outcome(writer.close)
        found.append((first, after))
    (real, real_after), (ours, our_after) = found
    assert agree(real, ours) or (state != "good" and write in UNLIKE)
    assert real_after == our_after
    assert words(real).removesuffix("; Failed to create the file header") in str(ours)


KEYS = {
    "0": lambda source: source[0],
    "24": lambda source: source[24],
    "a numpy integer": lambda source: source[np.int64(3)],
    "an array of no dimensions": lambda source: source[np.array(3)],
    "True": lambda source: source[True],
    "N": lambda source: source[N],
    "-1": lambda source: source[-1],
    "a batch": lambda source: source.__getitems__([3, 1, 1, 24]),
    "a batch of numpy": lambda source: source.__getitems__(np.array([3, 1])),
    "a tuple": lambda source: source.__getitems__((3, 1)),
    "a set": lambda source: source.__getitems__({3}),
    "a range": lambda source: source.__getitems__(range(4)),
    "a batch with N": lambda source: source.__getitems__([0, N]),
    "a batch with -1": lambda source: source.__getitems__([0, -1]),
    "a batch of an integer": lambda source: source.__getitems__(3),
    "a batch of None": lambda source: source.__getitems__(None),
    "length": len,
    "iteration": list,
    "backwards": lambda source: list(reversed(source)),
    "representation": repr,
    "place of 7": lambda source: source._reader_idx_and_position(7),
    "place of N": lambda source: source._reader_idx_and_position(N),
    "contents": lambda source: b"11" in source,
}
SOURCES = {
    "whole": lambda files: files["good"],
    "parts": lambda files: [files["good"] + "[3:20]", files["good"] + "[0:8]"],
    "beyond the end": lambda files: files["good"] + "[20:45]",
    "damaged": lambda files: [files["good"] + "[0:2]", files["bad"]],
    "missing": lambda files: files["missing"],
    "missing part": lambda files: files["missing"] + "[0:25]",
    "empty": lambda files: files["empty"],
    "too short": lambda files: [files["short"]],
    "none": lambda files: [],  # noqa: ARG005
    "None": lambda files: None,  # noqa: ARG005
    "a number among them": lambda files: [files["good"], 5],
    "a set": lambda files: {files["good"]},
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("paths", SOURCES)
def test_both_data_sources_behave_the_same(files, paths, key):
    logging.disable()
    found = [
        outcome(
            lambda module=module: KEYS[key](module.ArrayRecordDataSource(SOURCES[paths](files)))
        )
        for module in (real_source, our_source)
    ]
    logging.disable(logging.NOTSET)
    assert agree(*found)
    assert words(found[0]) in str(found[1])


BETTER = {
    "a list": lambda source: source[[3, 1]],
    "a slice": lambda source: source[2:5],
    "an array": lambda source: source[np.array([1, 2])],
    "no keys": lambda source: source.__getitems__([]),
    "Grain's batch": lambda source: source._getitems([3, 1]),
}


@pytest.mark.parametrize("key", BETTER)
def test_inputs_that_the_real_data_source_rejects_work(files, key):
    logging.disable()
    real = outcome(lambda: BETTER[key](real_source.ArrayRecordDataSource(files["good"])))
    ours = BETTER[key](our_source.ArrayRecordDataSource(files["good"]))
    logging.disable(logging.NOTSET)
    assert isinstance(real, Exception)
    assert isinstance(ours, list)


def test_options_that_the_real_package_rejects_work(files):
    for options in ({"readahead_buffer_size": "0"}, {"readahead_buffer_size": "16MB"}):
        real = real_source.ArrayRecordDataSource(files["good"], options)
        assert isinstance(outcome(lambda source=real: source[0]), ValueError)
        assert our_source.ArrayRecordDataSource(files["good"], options)[0] == b"0"
    with pytest.raises(ValueError, match="invalid value"):
        real_module.ArrayRecordReader(files["good"], "readahead_buffer_size:16MB")
    assert our_module.ArrayRecordReader(files["good"], "readahead_buffer_size:16MB").ok()


def test_a_boolean_mask_is_not_a_batch(files):
    mask = np.array([True, False])
    reader = real_module.ArrayRecordReader(files["good"])
    assert reader.read(mask) == reader.read([1, 0])
    with pytest.raises(TypeError):
        our_module.ArrayRecordReader(files["good"]).read(mask)
