"""A second implementation of `.ingot` files, from docs/format.md alone: small, slow and strict.

`File` checks every checksum and every rule of a whole file, and has all its rows.
`write` returns an uncompressed file of one segment. Numbers of rules are those of the format.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import lz4.block
import zstandard

MIB = 1 << 20
HEADER = struct.Struct("<8sHHI16sII")
PAGE = struct.Struct("<4sHHQQQQII")
ENCODING = struct.Struct("<BBH")
DICTIONARY = struct.Struct("<4sIQ")
DIRECTORY = struct.Struct("<4sIQQQ")
ENTRY = struct.Struct("<QIIII")
TRAILER = struct.Struct("<8s16sQQQQQQQIIII")
CHECKSUM = struct.Struct("<I")
SIGNATURE = b"\x89INGOT\r\n"
TRAILER_MAGIC = b"\x89IngEnd\n"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
KIND_MARK, KIND_PAGE, KIND_DICTIONARY, KIND_DIRECTORY = range(4)
CODEC_NONE, CODEC_ZSTD, CODEC_LZ4 = range(3)
WIDE, RAW_LENGTHS = 1, 2

Row = dict[str, Any]  # a sequence is a list of bytes; all else is bytes


class FormatError(ValueError):
    """The file is refused."""


class NotIngotError(FormatError):
    """The signature is another."""


class UnsupportedError(FormatError):
    """The major version is not known."""


class CorruptError(FormatError):
    """A checksum or a rule is broken."""


class UnfinishedError(CorruptError):
    """The file does not end in a trailer that commits a directory."""


class Field(NamedTuple):
    """A field of the schema; only a column has a width."""

    name: str
    kind: str
    width: int = 0
    type: str = ""


class Trailer(NamedTuple):
    """The 96 bytes that commit a block."""

    magic: bytes
    file_id: bytes
    offset: int
    block_offset: int
    block_length: int
    previous: int
    rows: int
    cells: int
    durable: int
    kind: int
    block_checksum: int
    previous_checksum: int
    checksum: int


class Entry(NamedTuple):
    """A block in the directory; that of a dictionary has its field in place of `rows`."""

    offset: int
    length: int
    checksum: int
    rows: int
    cells: int


class Page(NamedTuple):
    """The index of a run of rows; cell k is `cells[k]`: begin, end, checksum and raw length."""

    base: int
    rows: int
    first_cell: int
    encodings: list[tuple[int, int, int]]
    cells: list[tuple[int, int, int, int]]
    sequences: dict[str, tuple[int, ...]]
    columns: dict[str, list[bytes]]


def crc_of_byte(byte: int) -> int:
    """Return an entry of the table for `crc32c`."""
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


CRC_TABLE = [crc_of_byte(byte) for byte in range(256)]


def crc32c(content: bytes) -> int:
    """Return the CRC-32C of RFC 3720."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def cell_checksum(file_id: bytes, number: int, stored: bytes) -> int:
    """Return the checksum of the cell of this number."""
    return crc32c(file_id + number.to_bytes(8, "little") + stored)


def cell_format(flags: int) -> struct.Struct:
    """Return the layout of the entry of a cell in a page with these flags."""
    number = "Q" if flags & WIDE else "I"
    return struct.Struct(f"<{number}I{number if flags & RAW_LENGTHS else ''}")


def require(condition: object, complaint: str) -> None:
    """Refuse the file as corrupt unless `condition` holds."""
    if not condition:
        raise CorruptError(complaint)


class File:
    """All that a whole file says: `fields`, `metadata` and `rows`, and how it is laid out."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.header_length, self.file_id = self._read_header()
        self.fields, self.metadata = read_schema(content[HEADER.size : self.header_length])
        self.trailers = self._read_chain()
        directories = [t for t in self.trailers if t.kind == KIND_DIRECTORY]
        listed = [self._read_directory(trailer) for trailer in directories]
        self.page_entries, self.dictionary_entries = listed[-1]
        self._check_what_is_listed()
        self.dictionaries = [self._read_dictionary(entry) for entry in self.dictionary_entries]
        self.pages = [*self._read_pages()]
        self._check_that_there_are_no_gaps()
        self.rows = [row for page in self.pages for row in self._read_rows(page)]

    def _read_header(self) -> tuple[int, bytes]:
        """Rule 1: return the length of the header and the id of the file."""
        if self.content[:8] != SIGNATURE:
            raise NotIngotError("the signature is another")
        require(len(self.content) >= HEADER.size, "header: cut")
        _, major, minor, flags, file_id, size, checksum = HEADER.unpack_from(self.content)
        if major != 1:
            raise UnsupportedError(f"version {major}.{minor}")
        end = HEADER.size + size
        require(flags == 0, "header: flags")
        require(size <= 16 * MIB and end <= len(self.content), "header: length")
        covered = self.content[:36] + self.content[HEADER.size : end]
        require(crc32c(covered) == checksum, "header: checksum")
        return end, file_id

    def _read_chain(self) -> list[Trailer]:
        """Return all trailers, the first one first."""
        try:
            chain = [self._read_trailer(len(self.content) - TRAILER.size)]
        except CorruptError as error:
            raise UnfinishedError(str(error)) from error
        if chain[0].kind != KIND_DIRECTORY:
            raise UnfinishedError("the last trailer commits no directory")
        while (later := chain[-1]).previous:
            chain.append(self._read_trailer(later.previous))
            require(chain[-1].checksum == later.previous_checksum, "trailer: not as recorded")
        require(chain[-1].previous_checksum == 0, "trailer: the first has a previous checksum")
        return chain[::-1]

    def _read_trailer(self, at: int) -> Trailer:
        """Rule 12."""
        require(self.header_length <= at <= len(self.content) - TRAILER.size, "trailer: place")
        trailer = Trailer(*TRAILER.unpack_from(self.content, at))
        begin = trailer.previous + TRAILER.size if trailer.previous else self.header_length
        require(trailer.magic == TRAILER_MAGIC, "trailer: magic")
        require(trailer.file_id == self.file_id, "trailer: file id")
        require(trailer.offset == at, "trailer: offset")
        require(trailer.block_offset + trailer.block_length == at, "trailer: end of its block")
        require(begin <= trailer.block_offset, "trailer: its block begins too early")
        require(trailer.durable <= at, "trailer: durable")
        self._check_checksum(self.content[at : at + TRAILER.size], trailer.checksum)
        require(trailer.kind <= KIND_DIRECTORY, "trailer: kind")
        if trailer.kind == KIND_MARK:
            require(trailer.block_length == trailer.block_checksum == 0, "mark: it has a block")
        return trailer

    def _check_checksum(self, block: bytes, recorded: int) -> None:
        """Check a block against its last four bytes, and these against what is recorded."""
        (own,) = CHECKSUM.unpack(block[-4:])
        require(crc32c(self.file_id + block[:-4]) == own == recorded, "checksum")

    def _read_block(self, entry: Entry, magic: bytes) -> bytes:
        """Return a block after a check of its place, checksum and magic."""
        block = self.content[entry.offset : entry.offset + entry.length]
        require(len(block) == entry.length >= DICTIONARY.size + CHECKSUM.size, "block: length")
        self._check_checksum(block, entry.checksum)
        found, _, offset = DICTIONARY.unpack_from(block)
        require((found, offset) == (magic, entry.offset), "block: magic or offset")
        return block

    def _read_directory(self, trailer: Trailer) -> tuple[list[Entry], list[Entry]]:
        """Rule 10: return the pages and the dictionaries."""
        place = Entry(trailer.block_offset, trailer.block_length, trailer.block_checksum, 0, 0)
        block = self._read_block(place, b"IDIR")
        require(len(block) >= DIRECTORY.size, "directory: length")
        _, count, _, pages, size = DIRECTORY.unpack_from(block)
        end = DIRECTORY.size + ENTRY.size * (pages + count)
        require(end + size + CHECKSUM.size == len(block), "directory: length")
        require(block[end:-4] == self.content[: self.header_length], "directory: header")
        entries = [Entry(*entry) for entry in ENTRY.iter_unpack(block[DIRECTORY.size : end])]
        for part in (entries[:pages], entries[pages:]):
            for before, after in pairwise([Entry(self.header_length, 0, 0, 0, 0), *part, place]):
                require(before.offset + before.length <= after.offset, "directory: order")
        require(sum(entry.rows for entry in entries[:pages]) == trailer.rows, "directory: rows")
        require(sum(entry.cells for entry in entries[:pages]) == trailer.cells, "directory: cells")
        return entries[:pages], entries[pages:]

    def _check_what_is_listed(self) -> None:
        """Check that the directory lists what the trailers commit, with the same counts."""
        for kind, entries in (
            (KIND_PAGE, self.page_entries),
            (KIND_DICTIONARY, self.dictionary_entries),
        ):
            committed = [trailer for trailer in self.trailers if trailer.kind == kind]
            places = [(t.block_offset, t.block_length, t.block_checksum) for t in committed]
            require(places == [entry[:3] for entry in entries], "directory: not as committed")
        rows = cells = 0
        pages = iter(self.page_entries)
        for trailer in self.trailers:
            if trailer.kind == KIND_PAGE:
                entry = next(pages)
                rows, cells = rows + entry.rows, cells + entry.cells
            require((trailer.rows, trailer.cells) == (rows, cells), "trailer: rows or cells")

    def _check_that_there_are_no_gaps(self) -> None:
        """Check that each segment begins where the one before it ends."""
        end = self.header_length
        bases = (page.base for page in self.pages)
        for trailer in self.trailers:
            begin = next(bases) if trailer.kind == KIND_PAGE else trailer.block_offset
            require(begin == end, "segment: bytes that belong to nothing, or to two things")
            end = trailer.offset + TRAILER.size

    def _read_dictionary(self, entry: Entry) -> bytes:
        block = self._read_block(entry, b"IDIC")
        _, field, _ = DICTIONARY.unpack_from(block)
        require(field == entry.rows and field < len(self.fields), "dictionary: field")
        require(entry.cells == 0, "dictionary: not zero")
        require(entry.length <= DICTIONARY.size + 16 * MIB + CHECKSUM.size, "dictionary: size")
        return block[DICTIONARY.size : -CHECKSUM.size]

    def _read_pages(self) -> Iterator[Page]:
        first_row = first_cell = 0
        for entry in self.page_entries:
            yield self._read_page(entry, (first_row, first_cell))
            first_row, first_cell = first_row + entry.rows, first_cell + entry.cells

    def _read_page(self, entry: Entry, first: tuple[int, int]) -> Page:
        """Rules 7 and 11."""
        block = self._read_block(entry, b"IPAG")
        require(len(block) >= PAGE.size, "page: length")
        _, flags, count, _, base, first_row, first_cell, rows, cells = PAGE.unpack_from(block)
        require(flags <= WIDE | RAW_LENGTHS, "page: flags")
        require(count == len(self.fields), "page: fields")
        require((first_row, first_cell) == first, "page: first row or cell")
        require((rows, cells) == (entry.rows, entry.cells) and rows, "page: rows or cells")
        layout = cell_format(flags)
        sequences = [field for field in self.fields if field.kind == "sequence"]
        columns = [field for field in self.fields if field.kind == "column"]
        sizes = [PAGE.size, ENCODING.size * count, layout.size * cells]
        sizes += [4 * rows for _ in sequences] + [field.width * rows for field in columns]
        require(sum(sizes) + CHECKSUM.size == len(block), "page: length")
        _, encodings, entries, *rest = split(block, sizes)
        return Page(
            base,
            rows,
            first_cell,
            [*ENCODING.iter_unpack(encodings)],
            [*read_entries(layout.iter_unpack(entries), base, entry.offset)],
            {field.name: (0, *struct.unpack(f"<{rows}I", rest.pop(0))) for field in sequences},
            {field.name: split(rest.pop(0), [field.width] * rows) for field in columns},
        )

    def _read_rows(self, page: Page) -> Iterator[Row]:
        """Rule 7: yield the rows of a page."""
        cell = 0
        for row in range(page.rows):
            values: Row = {}
            for index, field in enumerate(self.fields):
                if field.kind == "column":
                    values[field.name] = page.columns[field.name][row]
                elif field.kind == "cell":
                    values[field.name] = self._read_cell(page, index, cell)
                    cell += 1
                else:
                    begin, end = page.sequences[field.name][row : row + 2]
                    require(begin <= end, "page: a sequence decreases")
                    numbers = range(cell, cell + end - begin)
                    values[field.name] = [self._read_cell(page, index, k) for k in numbers]
                    cell = numbers.stop
            yield values
        require(cell == len(page.cells), "page: more cells than its sequences count")

    def _read_cell(self, page: Page, field: int, index: int) -> bytes:
        """Rules 4, 6 and 9."""
        require(index < len(page.cells), "page: fewer cells than its sequences count")
        begin, end, checksum, raw_length = page.cells[index]
        stored = self.content[begin:end]
        expected = cell_checksum(self.file_id, page.first_cell + index, stored)
        require(expected == checksum, "cell: checksum")
        codec, zero, number = page.encodings[field]
        dictionary = self._dictionary(number, begin)
        require(codec <= CODEC_LZ4 and zero == 0, "cell: codec")
        if raw_length == len(stored):
            return stored
        raw = decompress(codec, stored, raw_length, dictionary)
        require(len(raw) == raw_length, "cell: raw length")
        return raw

    def _dictionary(self, number: int, before: int) -> bytes:
        """Rule 9: return the dictionary of this number, which stands before this offset."""
        if number == 0:
            return b""
        require(number <= len(self.dictionaries), "dictionary: number")
        require(self.dictionary_entries[number - 1].offset < before, "dictionary: too late")
        return self.dictionaries[number - 1]


def read_schema(text: bytes) -> tuple[list[Field], dict[str, object]]:
    """Rule 2: return the fields and the metadata."""
    try:
        schema = json.loads(text.decode(), parse_constant=int)
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"header: JSON: {error}") from error
    require(depth(schema) <= 128, "header: nested too deep")
    require(isinstance(schema, dict), "header: no object")
    fields, metadata = schema.get("fields"), schema.get("metadata")
    require(isinstance(metadata, dict), "header: metadata")
    require(isinstance(fields, list) and 1 <= len(fields) <= 4096, "header: fields")
    for field in fields:
        check_field(field)
    names = {field["name"] for field in fields}
    require(len(names) == len(fields), "header: two fields of a name")
    members = [{k: v for k, v in field.items() if k in Field._fields} for field in fields]
    return [Field(**member) for member in members], metadata


def check_field(field: Any) -> None:
    """Rule 2."""
    require(isinstance(field, dict), "field: no object")
    require(isinstance(field.get("name"), str), "field: name")
    require(field.get("kind") in ("cell", "sequence", "column"), "field: kind")
    require(isinstance(field.get("type", ""), str), "field: type")
    if field["kind"] == "column":
        width = field.get("width")
        require(type(width) is int and 1 <= width <= 65536, "field: width")


def depth(value: object) -> int:
    """Return how deep objects and arrays are nested in `value`."""
    if isinstance(value, dict):
        value = [*value.values()]
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def split(content: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Return pieces of these sizes."""
    return [content[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def read_entries(
    entries: Iterator[tuple[int, ...]], base: int, offset: int
) -> Iterator[tuple[int, int, int, int]]:
    """Rules 4, 5 and 8: yield begin, end, checksum and raw length of each cell."""
    begin = base
    for end, checksum, *raw in entries:
        stored = base + end - begin
        raw_length = raw[0] if raw else stored
        require(stored >= 0, "page: an end decreases")
        require(raw_length >= stored, "page: a raw length is below the stored length")
        limit = max(stored, 64 * MIB + 256 * stored)
        require(raw_length <= limit, "page: a raw length is too large")
        yield begin, base + end, checksum, raw_length
        begin = base + end
    require(begin == offset, "page: the last end")


def decompress(codec: int, stored: bytes, raw_length: int, dictionary: bytes) -> bytes:
    """Rule 6."""
    try:
        if codec == CODEC_ZSTD:
            known = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
            frames = zstandard.ZstdDecompressor(dict_data=known)
            return frames.decompress(ZSTD_MAGIC + stored, raw_length, allow_extra_data=False)
        require(codec == CODEC_LZ4, "cell: compressed without a codec")
        return lz4.block.decompress(stored, uncompressed_size=raw_length)
    except (zstandard.ZstdError, lz4.block.LZ4BlockError, ValueError) as error:
        raise CorruptError(f"cell: {error}") from error


def write(
    rows: Sequence[Row],
    *,
    fields: Sequence[Field] = (Field("record", "cell"),),
    metadata: Mapping[str, object],
    file_id: bytes,
    flags: int = 0,
) -> bytes:
    """Return a file with all rows in one page; without rows, it has no page."""
    header = make_header(fields, metadata, file_id)
    cells = [cell for row in rows for cell in cells_of(row, fields)]
    content = header + b"".join(cells)
    counts = (len(rows), len(cells))
    entries = last = b""
    if rows:
        front = PAGE.pack(
            b"IPAG", flags, len(fields), len(content), len(header), 0, 0, len(rows), len(cells)
        )
        page = sealed(file_id, front + make_index(rows, fields, cells, (file_id, flags)))
        entries = ENTRY.pack(len(content), len(page), checksum_of(page), *counts)
        content, last = commit(content, KIND_PAGE, page, b"", (file_id, *counts))
    front = DIRECTORY.pack(b"IDIR", 0, len(content), 1 if rows else 0, len(header))
    directory = sealed(file_id, front + entries + header)
    content, _ = commit(content, KIND_DIRECTORY, directory, last, (file_id, *counts))
    return content


def checksum_of(block: bytes) -> int:
    """Return the checksum of a block or trailer, 0 if there is none."""
    return int.from_bytes(block[-4:], "little")


def sealed(file_id: bytes, block: bytes) -> bytes:
    """Return a block or trailer with its checksum."""
    return block + CHECKSUM.pack(crc32c(file_id + block))


def make_header(fields: Sequence[Field], metadata: Mapping[str, object], file_id: bytes) -> bytes:
    """Return the header."""
    members = [{k: v for k, v in field._asdict().items() if v} for field in fields]
    text = json.dumps({"fields": members, "metadata": metadata}, separators=(",", ":")).encode()
    front = HEADER.pack(SIGNATURE, 1, 0, 0, file_id, len(text), 0)[:36]
    return front + CHECKSUM.pack(crc32c(front + text)) + text


def cells_of(row: Row, fields: Sequence[Field]) -> Iterator[bytes]:
    """Yield the cells of a row in the order of the fields."""
    for field in fields:
        if field.kind == "cell":
            yield row[field.name]
        elif field.kind == "sequence":
            yield from row[field.name]


def make_index(
    rows: Sequence[Row], fields: Sequence[Field], cells: Sequence[bytes], how: tuple[bytes, int]
) -> bytes:
    """Return encodings, entries, sequences and columns of a page; `how` is file id and flags."""
    file_id, flags = how
    index = ENCODING.pack(CODEC_NONE, 0, 0) * len(fields)
    for number, end in enumerate(accumulate(map(len, cells))):
        checksum = cell_checksum(file_id, number, cells[number])
        raw = [len(cells[number])] if flags & RAW_LENGTHS else []
        index += cell_format(flags).pack(end, checksum, *raw)
    for field in (field for field in fields if field.kind == "sequence"):
        index += struct.pack(f"<{len(rows)}I", *accumulate(len(row[field.name]) for row in rows))
    for field in (field for field in fields if field.kind == "column"):
        index += b"".join(row[field.name] for row in rows)
    return index


def commit(
    content: bytes, kind: int, block: bytes, last: bytes, what: tuple[bytes, int, int]
) -> tuple[bytes, bytes]:
    """Return the content with a block and its trailer behind it, and the trailer.

    `last` is the trailer at the end of `content`; `what` is file id, rows and cells.
    """
    file_id, rows, cells = what
    offset = len(content) + len(block)
    places = (offset, len(content), len(block), len(content) - len(last) if last else 0)
    durable = offset if kind == KIND_DIRECTORY else 0
    checksums = (checksum_of(block), checksum_of(last), 0)
    trailer = TRAILER.pack(TRAILER_MAGIC, file_id, *places, rows, cells, durable, kind, *checksums)
    trailer = sealed(file_id, trailer[:-4])
    return content + block + trailer, trailer
