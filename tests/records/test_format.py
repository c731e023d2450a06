"""The specification is enough: what one of two implementations writes, the other reads."""

import json
import os
import random
import struct
from pathlib import Path

import pytest

import ingot
from tests.support import ROOT, reference

SPECIFICATION = ROOT / "docs" / "format.md"
ID = bytes(range(16))
TEXTS = [
    json.dumps({"id": k, "name": f"user {k}", "mail": f"user{k}@example.com"}).encode()
    for k in range(5000)
]
NOISE = random.Random(0).randbytes(1000)
WIDE_AND_RAW_LENGTHS = reference.WIDE | reference.RAW_LENGTHS
ALL_FLAGS = [0, reference.WIDE, reference.RAW_LENGTHS, WIDE_AND_RAW_LENGTHS]

# Where the parts of the example begin.
HEADER, PAGE, PAGE_TRAILER, DIRECTORY, CLOSING_TRAILER, END = 0, 0x6C, 0xB4, 0x114, 0x1B7, 0x217
HEADER_LENGTH = 0x67


def example() -> bytes:
    """Return the complete file that the specification has in hex."""
    listing = SPECIFICATION.read_text().split("```hex\n")[1].split("```")[0]
    return bytes.fromhex("".join(line[6:54] for line in listing.splitlines()))


def records_of(content: bytes) -> list[bytes]:
    return [row["record"] for row in reference.File(content).rows]


def rows_of(records: list[bytes]) -> list[reference.Row]:
    return [{"record": record} for record in records]


def reference_accepts(content: bytes) -> bool:
    try:
        reference.File(content)
    except reference.FormatError:
        return False
    return True


def ingot_accepts(path: Path) -> bool:
    try:
        with ingot.open(path) as reader:
            return reader.verify().ok
    except ingot.FormatError:
        return False


def forge(content: bytes, *changes: tuple[int, str, int]) -> bytes:
    """Return the example with numbers changed and every checksum set right again."""
    forged = bytearray(content)
    for offset, form, value in changes:
        struct.pack_into(form, forged, offset, value)
    header = bytes(forged[:36] + forged[40:HEADER_LENGTH])
    forged[36:40] = reference.CHECKSUM.pack(reference.crc32c(header))
    forged[CLOSING_TRAILER - 4 - HEADER_LENGTH : CLOSING_TRAILER - 4] = forged[:HEADER_LENGTH]
    page = seal(forged, PAGE, PAGE_TRAILER)
    forged[PAGE_TRAILER + 84 : PAGE_TRAILER + 88] = page
    forged[DIRECTORY + 44 : DIRECTORY + 48] = page
    forged[END - 8 : END - 4] = seal(forged, PAGE_TRAILER, DIRECTORY)
    forged[END - 12 : END - 8] = seal(forged, DIRECTORY, CLOSING_TRAILER)
    seal(forged, CLOSING_TRAILER, END)
    return bytes(forged)


def seal(content: bytearray, begin: int, end: int) -> bytes:
    content[begin:end] = reference.sealed(ID, bytes(content[begin : end - 4]))
    return bytes(content[end - 4 : end])


def test_the_checksum_is_that_of_the_specification():
    assert reference.crc32c(b"123456789") == 0xE3069283


def test_the_reference_reads_the_example():
    file = reference.File(example())
    assert file.rows == [{"record": b"hello"}, {"record": b""}]
    assert file.fields == [reference.Field("record", "cell")]
    assert file.metadata == {"k": 1}
    assert file.file_id == ID


def test_the_reference_writes_the_example():
    rows = rows_of([b"hello", b""])
    assert reference.write(rows, metadata={"k": 1}, file_id=ID) == example()


def test_ingot_reads_the_example(path):
    path.write_bytes(example())
    with ingot.open(path) as reader:
        assert [bytes(record) for record in reader] == [b"hello", b""]
        assert reader.metadata == {"k": 1}
        assert reader.verify().ok


@pytest.mark.parametrize("compression", [None, "zstd", "lz4", "auto"])
@pytest.mark.parametrize(
    "records",
    [
        pytest.param([], id="no records"),
        pytest.param([b""] * 3, id="empty records"),
        pytest.param([b"a", b"", bytes(1000), NOISE, b"a" * 100_000], id="mixed"),
        pytest.param(TEXTS, id="texts"),
    ],
)
def test_the_reference_reads_what_ingot_writes(make, records, compression):
    metadata = {"a": [1, None, "\u00e4"]}
    content = make(records, compression=compression, metadata=metadata, sync=False).read_bytes()
    assert records_of(content) == records
    assert reference.File(content).metadata == metadata


def test_the_reference_reads_many_pages(make):
    records = [b"%d" % k for k in range(20_000)]
    content = make(records, compression=None, sync=False).read_bytes()
    assert records_of(content) == records
    assert len(reference.File(content).pages) > 1


def test_the_reference_decompresses_with_a_dictionary(make):
    file = reference.File(make(TEXTS, compression="zstd", sync=False).read_bytes())
    assert [row["record"] for row in file.rows] == TEXTS
    assert file.pages[0].encodings == [(reference.CODEC_ZSTD, 0, 1)]
    assert len(file.dictionaries) == 1


def test_the_reference_decompresses_lz4(make):
    records = [b"record %d " % k * 100 for k in range(100)]
    file = reference.File(make(records, compression="lz4", sync=False).read_bytes())
    assert [row["record"] for row in file.rows] == records
    assert file.pages[0].encodings == [(reference.CODEC_LZ4, 0, 0)]
    assert all(end - begin < length for begin, end, _, length in file.pages[0].cells)


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_the_reference_reads_a_file_that_was_appended_to(path, compression):
    for begin in range(0, 5000, 1000):
        with ingot.Writer(path, compression=compression, append=begin > 0, sync=False) as writer:
            writer.extend(TEXTS[begin : begin + 1000])
    assert records_of(path.read_bytes()) == TEXTS
    kinds = [trailer.kind for trailer in reference.File(path.read_bytes()).trailers]
    assert kinds.count(reference.KIND_DIRECTORY) == 5


@pytest.mark.parametrize("sync", [True, False])
def test_the_reference_reads_a_file_that_was_flushed(path, sync):
    with ingot.Writer(path, sync=sync) as writer:
        writer.flush()
        for text in TEXTS[:5]:
            writer.append(text)
            writer.flush()
            writer.flush()
    assert records_of(path.read_bytes()) == TEXTS[:5]
    assert len(reference.File(path.read_bytes()).pages) == 5


def test_the_reference_reads_a_file_whose_last_trailer_was_recovered(make):
    path = make(TEXTS, sync=False)
    *_, page_trailer, _ = reference.File(path.read_bytes()).trailers
    os.truncate(path, page_trailer.offset)
    with pytest.raises(reference.UnfinishedError):
        reference.File(path.read_bytes())
    ingot.recover(path)
    assert records_of(path.read_bytes()) == TEXTS


@pytest.mark.parametrize("flags", ALL_FLAGS)
@pytest.mark.parametrize("records", [[], [b""], [b"", b"a", bytes(100_000), b""], TEXTS])
def test_ingot_reads_what_the_reference_writes(path, records, flags):
    rows = rows_of(records)
    path.write_bytes(
        reference.write(rows, metadata={"a": [1]}, file_id=os.urandom(16), flags=flags)
    )
    with ingot.open(path) as reader:
        assert [bytes(record) for record in reader] == records
        assert reader.metadata == {"a": [1]}
        assert reader.verify().ok


def test_ingot_appends_to_what_the_reference_writes(path):
    rows = rows_of(TEXTS[:100])
    path.write_bytes(reference.write(rows, metadata={}, file_id=os.urandom(16)))
    with ingot.Writer(path, append=True, sync=False) as writer:
        writer.extend(TEXTS[100:])
    assert records_of(path.read_bytes()) == TEXTS


@pytest.mark.parametrize("flags", ALL_FLAGS)
def test_the_reference_reads_its_own_sequences_and_columns(flags):
    fields = [
        reference.Field("image", "cell", type="jpeg"),
        reference.Field("captions", "sequence"),
        reference.Field("label", "column", 2),
        reference.Field("weight", "column", 1),
        reference.Field("crops", "sequence"),
    ]
    rows = [
        {
            "image": b"image %d" % k,
            "captions": [b"caption"] * (k % 3),
            "label": k.to_bytes(2, "little"),
            "weight": bytes([k]),
            "crops": [b"%d" % j for j in range(k % 5)],
        }
        for k in range(100)
    ]
    file = reference.File(
        reference.write(rows, fields=fields, metadata={}, file_id=ID, flags=flags)
    )
    assert file.fields == fields
    assert file.rows == rows


def test_both_notice_every_changed_byte(path):
    content = bytearray(example())
    for offset in range(len(content)):
        content[offset] ^= 1
        path.write_bytes(content)
        assert not reference_accepts(bytes(content)), offset
        assert not ingot_accepts(path), offset
        content[offset] ^= 1


def test_both_reject_every_shorter_file(path):
    content = example()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert not reference_accepts(content[:length]), length
        assert not ingot_accepts(path), length


def test_both_accept_a_later_minor_version(path):
    content = forge(example(), (HEADER + 10, "<H", 7))
    path.write_bytes(content)
    assert reference_accepts(content)
    assert ingot_accepts(path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param((HEADER, "<B", 0x88), id="rule 1, signature"),
        pytest.param((HEADER + 8, "<H", 2), id="rule 1, version"),
        pytest.param((HEADER + 12, "<I", 1), id="rule 1, flags"),
        pytest.param((HEADER + 40, "<B", ord("[")), id="rule 2, JSON"),
        pytest.param((PAGE, "<B", 0), id="page, magic"),
        pytest.param((PAGE + 4, "<H", 4), id="rule 7, flags"),
        pytest.param((PAGE + 4, "<H", 1), id="rule 7, length"),
        pytest.param((PAGE + 6, "<H", 2), id="rule 7, fields"),
        pytest.param((PAGE + 8, "<Q", 0x6D), id="page, offset"),
        pytest.param((PAGE + 16, "<Q", 0x68), id="rule 8, base"),
        pytest.param((PAGE + 24, "<Q", 1), id="rule 11, first row"),
        pytest.param((PAGE + 32, "<Q", 1), id="rule 11, first cell"),
        pytest.param((PAGE + 40, "<I", 1), id="rule 11, rows"),
        pytest.param((PAGE + 44, "<I", 1), id="rule 11, cells"),
        pytest.param((PAGE + 48, "<B", 3), id="rule 9, codec"),
        pytest.param((PAGE + 52, "<I", 6), id="rule 8, an end decreases"),
        pytest.param((PAGE + 60, "<I", 6), id="rule 8, the last end"),
        pytest.param((PAGE_TRAILER, "<B", 0), id="trailer, magic"),
        pytest.param((PAGE_TRAILER + 8, "<B", 1), id="rule 12, file id"),
        pytest.param((PAGE_TRAILER + 24, "<Q", 1), id="rule 12, offset"),
        pytest.param((PAGE_TRAILER + 32, "<Q", 0x6D), id="rule 12, block offset"),
        pytest.param((PAGE_TRAILER + 40, "<Q", 0x47), id="rule 12, block length"),
        pytest.param((PAGE_TRAILER + 48, "<Q", 0x67), id="rule 12, previous"),
        pytest.param((PAGE_TRAILER + 80, "<I", 0), id="trailer, kind of a mark"),
        pytest.param((PAGE_TRAILER + 80, "<I", 4), id="trailer, unknown kind"),
        pytest.param((DIRECTORY, "<B", 0), id="directory, magic"),
        pytest.param((DIRECTORY + 4, "<I", 1), id="directory, dictionaries"),
        pytest.param((DIRECTORY + 8, "<Q", 0), id="directory, offset"),
        pytest.param((DIRECTORY + 16, "<Q", 2), id="directory, pages"),
        pytest.param((DIRECTORY + 24, "<Q", 0x66), id="directory, length of the header"),
        pytest.param((DIRECTORY + 32, "<Q", 0x115), id="rule 10, page behind the directory"),
        pytest.param((DIRECTORY + 40, "<I", 0x47), id="rule 11, length"),
        pytest.param((DIRECTORY + 48, "<I", 1), id="rule 10, rows"),
        pytest.param((DIRECTORY + 52, "<I", 1), id="rule 10, cells"),
        pytest.param((CLOSING_TRAILER + 48, "<Q", 0), id="trailer, one left out"),
        pytest.param((CLOSING_TRAILER + 56, "<Q", 3), id="rule 10, rows of the trailer"),
        pytest.param((CLOSING_TRAILER + 80, "<I", 1), id="trailer, the last one no directory"),
    ],
)
def test_both_reject_a_broken_rule_under_right_checksums(path, change):
    content = forge(example(), change)
    path.write_bytes(content)
    assert not reference_accepts(content)
    assert not ingot_accepts(path)


def test_forging_nothing_changes_nothing():
    assert forge(example()) == example()
