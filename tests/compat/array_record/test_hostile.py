"""ArrayRecord files that are damaged, and such that lie with correct hashes."""

import random
import struct

import pytest
import zstandard

import ingot
from ingot.compat.array_record.array_record_module import ArrayRecordReader, ArrayRecordWriter
from tests.compat.array_record.riegeli import BLOCK, UNSAID, File, field, hash64, simple, varint
from tests.support import DATA

GOLDEN = DATA / "arrayrecord"
RECORDS = [b"first", b"", b"the third one", b"4", b"fifth" * 20]


def zstd(data):
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


def whole(**claims):
    """Return a file with each record in a chunk of its own."""
    file = File()
    for record in RECORDS:
        file.records([record])
    return file.finish(**claims)


def chunk(records=RECORDS, **claims):
    """Return a file with one chunk."""
    file = File()
    file.records(records, **claims)
    return file.finish()


def listed(change):
    """Return a file whose footer lists its chunks as `change` makes of the truth."""
    file = File()
    for record in RECORDS:
        file.records([record])
    file.entries = change(file.entries)
    return file.finish(count=len(RECORDS))


def replaced(entries, number, **fields):
    """Return entries, one of them changed."""
    names = ("offset", "decoded", "records")
    changed = dict(zip(names, entries[number], strict=True)) | fields
    return [*entries[:number], tuple(changed.values()), *entries[number + 1 :]]


def squeezed(records, **claims):
    """Return a file with one chunk that is compressed by zstd."""
    return chunk(records, data=simple(records, codec=b"z", compress=zstd), **claims)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.array_record"


def ways_to_read(path, count):
    reader = ingot.open(path)
    yield lambda: [reader[k] for k in range(count)]
    yield lambda: reader[range(count)]
    yield lambda: [bytes(record) for record in reader.read(range(count))]
    yield lambda: list(reader)
    yield lambda: ArrayRecordReader(path).read_all()
    sequential = ArrayRecordReader(path)
    yield lambda: [sequential.read() for _ in range(count)]


def test_the_hash_is_that_of_riegeli():
    data = bytes(k & 255 for k in range(1000))
    for length, expected in {
        0: 0x72C3B1E9C0139FE1,
        7: 0x81D00CB703E09F52,
        20: 0xFBC84E6F3DDB64E3,
    }.items():
        assert hash64(data[:length]) == expected
    assert hash64(data) == 0x64A6A10BA1110D87


def groups(counts):
    file, rest = File(), list(RECORDS)
    for count in counts:
        file.records(rest[:count])
        del rest[:count]
    return file.finish()


def with_more_fields():
    file = File()
    for record in RECORDS:
        file.records([record])
    more = (
        field(9, 5)
        + field(10, b"more")
        + varint(11 << 3 | 5)
        + b"four"
        + varint(12 << 3 | 1)
        + b"8 bytes!"
    )
    about = field(1, 1) + field(2, 5) + field(3, 5) + more
    entries = [b"".join(map(field, (1, 2, 3), entry)) + more for entry in file.entries]
    return file.finish(footer=[more + field(1, about), *entries])


def between(kind):
    file = File()
    for record in RECORDS:
        file.put(kind, bytes(7))
        file.records([record])
        file.put(kind, bytes(70_000))
    return file.finish()


def with_compressed_footer():
    file = File()
    file.records(RECORDS)
    about = field(1, 1) + field(2, 1) + field(3, 5)
    entry = b"".join(map(field, (1, 2, 3), file.entries[0]))
    footer = [field(1, about), entry]
    return file.finish(
        footer=footer, footer_claims={"data": simple(footer, codec=b"z", compress=zstd)}
    )


def mixed():
    file = File()
    for k, record in enumerate(RECORDS):
        data = simple([record], codec=b"z", compress=zstd) if k % 2 else None
        file.records([record], data=data)
    return file.finish()


HONEST = {
    "a chunk for each record": whole,
    "all records in one chunk": chunk,
    "chunks of any number of records": lambda: groups([2, 1, 2]),
    "chunks of no records": lambda: groups([0, 3, 0, 0, 2, 0]),
    "a larger last chunk": lambda: groups([1, 4]),
    "no numbers of bytes": lambda: listed(lambda all_: [(o, UNSAID, n) for o, _, n in all_]),
    "no numbers of records but the first": lambda: listed(
        lambda all_: [all_[0], *((o, d, UNSAID) for o, d, _ in all_[1:])]
    ),
    "fields of the future": with_more_fields,
    "chunks of the future between the others": lambda: between(b"x"),
    "padding between the others": lambda: between(b"p"),
    "metadata between the others": lambda: between(b"m"),
    "no options": lambda: whole(options=UNSAID),
    "options that are no text": lambda: whole(options=b"\xff\xfe"),
    "compressed records": lambda: squeezed(RECORDS),
    "a compressed footer": with_compressed_footer,
    "each chunk compressed otherwise": mixed,
}


@pytest.mark.parametrize("name", HONEST)
def test_files_that_the_real_writer_would_not_write_are_read(path, name):
    path.write_bytes(HONEST[name]())
    for read in ways_to_read(path, len(RECORDS)):
        assert read() == RECORDS
    assert ArrayRecordReader(path).writer_options_string() in {None, "group_size:1,"}


def footer_at(offset):
    return whole(postscript=field(1, offset) + field(2, 0x71930E704FDAE05E))


def columns(
    states,
    *,
    subtypes=b"",
    indices=(),
    first=0,
    buffers=(b"",),
    lengths=None,
    buckets=None,
    transitions=b"",
    num_states=None,
    num_buffers=None,
):
    """Return a file with a transposed chunk of one record; `states` are tags and successors."""
    lengths = list(map(len, buffers)) if lengths is None else lengths
    bucket = b"".join(buffers)
    buckets = [len(bucket)] if buckets is None else buckets
    tags, successors = zip(*states, strict=True)
    numbers = [len(buckets), len(buffers) if num_buffers is None else num_buffers]
    numbers += [*buckets, *lengths, len(states) if num_states is None else num_states]
    header = b"".join(map(varint, [*numbers, *tags, *successors])) + subtypes
    header += b"".join(map(varint, [*indices, first]))
    data = b"\0" + varint(len(header)) + header + bucket + transitions
    return chunk([b"first"], data=data, kind=b"t")


NO_OP, NOT_PROTO, START_OF_INNER, START = 0, 1, 2, 3
END_OF_INNER = 2 << 3 | 6

LIES = {
    "states that never end": lambda: columns([(NO_OP, 1)]),
    "states that end where they begin": lambda: columns([(NO_OP, 3), (NO_OP, 2)]),
    "messages that never begin": lambda: columns([(END_OF_INNER, 1)]),
    "messages that never end": lambda: columns([(START_OF_INNER, 0), (START, 0)]),
    "more messages than transitions": lambda: columns(
        [(END_OF_INNER, 0)], transitions=b"\3" * 100_000
    ),
    "records that never end": lambda: columns([(START, 1)]),
    "more records than there are": lambda: columns([(START, 0)], transitions=b"\3" * 1000),
    "no state": lambda: columns([(START, 0)], first=1),
    "a successor that is not there": lambda: columns([(START, 2)], transitions=b"\4"),
    "a transition to nowhere": lambda: columns([(START, 0)], transitions=b"\xfc"),
    "2^40 states": lambda: columns([(START, 0)], num_states=2**40),
    "2^63 buffers": lambda: columns([(START, 0)], num_buffers=2**63),
    "a bucket of 2^63 bytes": lambda: columns([(START, 0)], buckets=[2**63]),
    "a buffer of 2^63 bytes": lambda: columns([(START, 0)], lengths=[2**63]),
    "a buffer that is not there": lambda: columns([(10, 1), (START, 0)], indices=[7]),
    "a string of 2^32 bytes": lambda: columns(
        [(10, 1), (START, 0)], indices=[0], buffers=[varint(2**32 - 1) + b"x"], transitions=b"\0"
    ),
    "a record of 2^32 bytes": lambda: columns(
        [(NOT_PROTO, 0)], indices=[0], buffers=[b"first", varint(2**32 - 1)]
    ),
    "a field of no kind": lambda: columns([(8 | 7, 0)]),
    "a tag of no kind": lambda: columns([(5, 0)]),
    "a number of no kind": lambda: columns([(8, 0)], subtypes=b"\xff"),
    "more bytes than there are": lambda: chunk(decoded=1000),
    "fewer bytes than there are": lambda: chunk(decoded=3),
    "2^63 bytes": lambda: chunk(decoded=2**63),
    "sizes that add up to more": lambda: chunk(data=simple(RECORDS, sizes=[5, 0, 13, 1, 101])),
    "sizes that add up to less": lambda: chunk(data=simple(RECORDS, sizes=[5, 0, 13, 1, 99])),
    "sizes that add up to 2^64": lambda: chunk(
        data=simple(RECORDS, sizes=[2**63, 2**63, 119, 0, 0])
    ),
    "fewer sizes": lambda: chunk(data=simple(RECORDS, sizes=[5, 0, 14, 100])),
    "more sizes": lambda: chunk(data=simple(RECORDS, sizes=[5, 0, 13, 1, 100, 0])),
    "sizes that are cut short": lambda: chunk(data=b"\0\5\5\0\r\1" + b"".join(RECORDS)),
    "a size of eleven bytes": lambda: chunk([b"x"], data=b"\0\x0b" + b"\x81" * 10 + b"\0x"),
    "sizes longer than the chunk": lambda: chunk(data=b"\0" + varint(5000) + b"x" * 50),
    "sizes of 2^63 bytes": lambda: chunk(data=b"\0" + varint(2**63) + b"x" * 50),
    "no data": lambda: chunk(data=b""),
    "no compression that is known": lambda: chunk(data=b"q" + simple(RECORDS)[1:]),
    "a compression that it is not": lambda: chunk(data=b"z" + simple(RECORDS)[1:]),
    "brotli that it is not": lambda: chunk(data=b"b" + simple(RECORDS)[1:]),
    "snappy that it is not": lambda: chunk(data=b"s" + simple(RECORDS)[1:]),
    "compressed records that are longer": lambda: squeezed(RECORDS, decoded=50),
    "compressed records that are shorter": lambda: squeezed(RECORDS, decoded=500),
    "bytes after the compressed data": lambda: chunk(
        data=simple(RECORDS, codec=b"z", compress=zstd) + b"more"
    ),
    "2^56 records": lambda: chunk(claimed=2**56 - 1),
    "more records than the footer says": lambda: chunk(claimed=6),
    "fewer records than the footer says": lambda: chunk(claimed=4),
    "more data than the file": lambda: chunk(length=10**6),
    "2^64 bytes of data": lambda: chunk(length=2**64 - 1),
    "a kind that is not known": lambda: chunk(kind=b"x"),
    "a signature of records": lambda: chunk(kind=b"s"),
    "padding of records": lambda: chunk(kind=b"p"),
    "metadata of records": lambda: chunk(kind=b"m"),
    "columns that are not": lambda: chunk(kind=b"t"),
    "more chunks": lambda: whole(chunks=6),
    "fewer chunks": lambda: whole(chunks=4),
    "2^64 chunks": lambda: whole(chunks=2**64 - 1),
    "more records in all": lambda: whole(count=6),
    "fewer records in all": lambda: whole(count=4),
    "no records in all": lambda: whole(count=0),
    "2^64 records in all": lambda: whole(count=2**64 - 1),
    "no number of records": lambda: whole(count=UNSAID),
    "no number of chunks": lambda: whole(chunks=UNSAID),
    "no version": lambda: whole(version=UNSAID),
    "version 2": lambda: whole(version=2),
    "a chunk at the front": lambda: listed(lambda all_: replaced(all_, 0, offset=0)),
    "a chunk at nowhere": lambda: listed(lambda all_: replaced(all_, 4, offset=2**64 - 1)),
    "a chunk beside itself": lambda: listed(lambda all_: replaced(all_, 2, offset=all_[2][0] + 1)),
    "a chunk in a block header": lambda: listed(lambda all_: replaced(all_, 4, offset=BLOCK + 3)),
    "a chunk in the postscript": lambda: listed(lambda all_: replaced(all_, 4, offset=BLOCK)),
    "the same chunk twice": lambda: listed(lambda all_: replaced(all_, 2, offset=all_[1][0])),
    "chunks in another order": lambda: listed(lambda all_: all_[::-1]),
    "a chunk instead of the next": lambda: listed(
        lambda all_: replaced(all_, 1, offset=all_[2][0])
    ),
    "a chunk of no place": lambda: listed(lambda all_: replaced(all_, 1, offset=UNSAID)),
    "a first chunk of no number": lambda: listed(lambda all_: replaced(all_, 0, records=UNSAID)),
    "a chunk of 2^63 records": lambda: listed(lambda all_: replaced(all_, 0, records=2**63)),
    "a chunk of no records": lambda: listed(lambda all_: replaced(all_, 0, records=0)),
    "a chunk of more bytes": lambda: listed(lambda all_: replaced(all_, 2, decoded=14)),
    "a chunk of 2^40 bytes": lambda: listed(lambda all_: replaced(all_, 2, decoded=2**40)),
    "a chunk of 2^64 bytes": lambda: listed(lambda all_: replaced(all_, 2, decoded=2**64 - 2)),
    "no footer": lambda: whole(footer=[]),
    "an empty footer": lambda: whole(footer=[b""]),
    "a footer of noise": lambda: whole(footer=[b"\xff" * 30]),
    "a footer of groups": lambda: whole(footer=[b"\x0b" * 1000]),
    "a footer that is cut short": lambda: whole(footer=[field(1, b"x" * 20)[:-5]]),
    "a footer of 2^40 bytes": lambda: whole(footer_claims={"decoded": 2**40}),
    "a footer of 2^56 records": lambda: whole(footer_claims={"claimed": 2**56 - 1}),
    "another magic": lambda: whole(magic=12),
    "no magic": lambda: whole(postscript=field(1, 64)),
    "no place of the footer": lambda: whole(postscript=field(2, 0x71930E704FDAE05E)),
    "an empty postscript": lambda: whole(postscript=b""),
    "a postscript of noise": lambda: whole(postscript=b"\xff" * 30),
    "a footer at the front": lambda: footer_at(0),
    "a footer at the first chunk": lambda: footer_at(64),
    "a footer beside itself": lambda: footer_at(65),
    "a footer in the postscript": lambda: footer_at(BLOCK),
    "a footer beyond the end": lambda: footer_at(10**9),
    "a footer at nowhere": lambda: footer_at(2**64 - 1),
}


@pytest.mark.parametrize("name", LIES)
def test_files_that_lie_are_rejected(path, name):
    path.write_bytes(LIES[name]())
    reader = outcome(lambda: ingot.open(path))
    refusals = [reader]
    if isinstance(reader, ingot.Reader):
        found = [outcome(lambda k=k: reader[k]) for k in range(len(reader))]
        refusals = [one for one in found if isinstance(one, Exception)]
        for k, one in enumerate(found):
            assert one == RECORDS[k] or f"record {k}: " in str(one) or "set_max" in str(one)
        assert not reader.verify().ok
        for read in ways_to_read(path, len(reader)):
            with pytest.raises((ingot.FormatError, MemoryError), match=r"x\.array_record"):
                read()
    assert refusals
    for error in refusals:
        assert str(path) in str(error)
        assert isinstance(error, MemoryError) or error.path == str(path)
        assert getattr(error, "offset", 0) is not None


def outcome(call):
    """Return what a call returns, or the error that it raises for a bad file."""
    try:
        return call()
    except (ingot.FormatError, MemoryError) as error:
        return error


def read_varint(data):
    """Return the number at the front of bytes, and the rest."""
    number = 0
    for k, byte in enumerate(data):
        number |= (byte & 127) << 7 * k
        if byte < 128:
            return number, data[k + 1 :]
    raise AssertionError


def compressed(path, codec, record):
    """Return the letter of a codec, and the compressed form of a record without its length."""
    with ArrayRecordWriter(path, codec) as writer:
        writer.write(record)
    content = path.read_bytes()
    plain = b"".join(content[at + 24 : at + BLOCK] for at in range(0, len(content), BLOCK))
    (length,) = struct.unpack_from("<Q", plain, 48)
    data = plain[80 : 80 + length]
    sizes_length, rest = read_varint(data[1:])
    return data[:1], read_varint(rest[sizes_length:])[1]


def bomb(path, codec, claimed, count):
    """Return a file whose first record claims this size; 8 MB of it follow."""
    letter, values = compressed(path, codec, bytes(8 << 20))
    sizes = varint(claimed) + bytes(count - 1)
    sizes = varint(len(sizes)) + compressed(path, codec, sizes)[1]
    data = letter + varint(len(sizes)) + sizes + varint(claimed) + values
    return chunk([b""] * count, data=data, decoded=claimed)


CLAIMS = [10, 1 << 29, 3 << 30, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]


@pytest.mark.parametrize(
    "codec",
    ["zstd:3", "zstd:1,window_log:31", "brotli:3", "brotli:3,window_log:30", "snappy"],
)
def test_bombs_do_not_take_the_memory(tmp_path, run_fault, codec):
    paths = []
    for count in (1, 2):
        for claimed in CLAIMS:
            paths.append(tmp_path / f"{count}-{claimed}.array_record")
            paths[-1].write_bytes(bomb(paths[-1], codec, claimed, count))
    outcome = run_fault("read_array_record.py", *paths)
    assert (outcome.returncode, outcome.stderr, outcome.stdout) == (0, "", "done\n")


def test_other_chunks_that_lie_do_not_take_the_memory(tmp_path, run_fault):
    paths = []
    for claimed in CLAIMS[1:]:
        letter, values = compressed(tmp_path / "x", "zstd", bytes(8 << 20))
        sizes = varint(claimed)
        sizes = varint(len(sizes)) + compressed(tmp_path / "x", "zstd", sizes)[1]
        data = letter + varint(len(sizes)) + sizes + varint(claimed) + values
        lie = {"data": data, "records": 1, "decoded": claimed}
        for place in ("footer_claims", "postscript_claims"):
            paths.append(tmp_path / f"{place}-{claimed}.array_record")
            paths[-1].write_bytes(whole(**{place: lie}))
        file = File()
        file.put(b"r", **lie)
        file.records(RECORDS)
        unlisted = tmp_path / "unlisted.array_record"
        unlisted.write_bytes(file.finish())
        assert list(ingot.open(unlisted)) == RECORDS
    outcome = run_fault("read_array_record.py", *paths)
    assert (outcome.returncode, outcome.stderr, outcome.stdout) == (0, "", "done\n")


def test_a_file_cut_short_is_never_a_shorter_one(path):
    rng = random.Random(5)
    with ArrayRecordWriter(path, "group_size:3") as writer:
        for _ in range(60):
            writer.write(rng.randbytes(5000))
    content = path.read_bytes()
    lengths = {0, 1, 23, 24, 63, 64, 65, 104, 65_535, len(content) - 1}
    for block in range(0, len(content), BLOCK):
        lengths |= {block, block + 1, block + 24, block + 64, block + rng.randrange(BLOCK)}
    for length in sorted(lengths):
        path.write_bytes(content[:length])
        with pytest.raises(ingot.CorruptFileError, match=r"x\.array_record: .*offset") as caught:
            ingot.open(path)
        assert caught.value.offset is not None
        reader = ArrayRecordReader(path)
        assert not reader.ok()
        with pytest.raises(RuntimeError):
            reader.read_all()


def test_bytes_after_the_end_are_rejected(path):
    content = (GOLDEN / "g10_brotli6.array_record").read_bytes()
    for more in (b"\0", b"x" * 100, bytes(BLOCK), b"x" * BLOCK):
        path.write_bytes(content + more)
        with pytest.raises(ingot.CorruptFileError):
            ingot.open(path)


def flips(content):
    """Give places in a file: all that say something, and some in the padding."""
    rng = random.Random(1)
    said = [at for at, byte in enumerate(content) if byte or content[at : at + 40].strip(b"\0")]
    yield from ((at, bit) for at in said for bit in range(8))
    yield from ((rng.randrange(len(content)), rng.randrange(8)) for _ in range(300))


@pytest.mark.parametrize("name", ["extra_tiny3_uncompressed", "tiny_zstd"])
def test_every_flipped_bit_is_noticed_or_harmless(path, name):
    if name == "tiny_zstd":
        with ArrayRecordWriter(path, "group_size:2,zstd") as writer:
            for record in RECORDS:
                writer.write(record)
    else:
        path.write_bytes((GOLDEN / f"{name}.array_record").read_bytes())
    content, records = path.read_bytes(), list(ingot.open(path))
    with path.open("r+b", buffering=0) as file:
        for at, bit in flips(content):
            file.seek(at)
            file.write(bytes([content[at] ^ 1 << bit]))
            check_damaged(path, records, at)
            file.seek(at)
            file.write(content[at : at + 1])
    assert list(ingot.open(path)) == records


def check_damaged(path, records, at):
    reader = outcome(lambda: ingot.open(path))
    if isinstance(reader, ingot.CorruptFileError):
        assert reader.path == str(path)
        assert reader.offset is not None
        return
    assert len(reader) == len(records)
    for k, record in enumerate(records):
        found = outcome(lambda k=k: reader[k])
        assert found == record or (found.record == k and found.offset <= at)
    assert not reader.verify().ok
