"""The messages of an Arrow stream: where batches of rows begin, and what they say of nulls.

A stream is a sequence of messages, each with four bytes ff, the length of a table of Google's
FlatBuffers, that table, and a body. A file has the same between two magic words.
"""

import struct
from typing import NamedTuple

_CONTINUED = 0xFFFF_FFFF
_DICTIONARY, _BATCH = 2, 3
_PAIR = 16
_SIZE = 8
_ROWS_PER_BYTE = 8
_ROWS_FREE = 1 << 24
"""Rows that a batch may have without a byte: nulls need none."""


class Batch(NamedTuple):
    """A batch of rows.

    Attributes:
        offset: Where its message begins.
        stop: Where its body ends.
        rows: The number of its rows.
        nulls: The number of nulls in each array, parents before their parts.
        is_compressed: Whether its body is compressed.
        nbytes: The size of its body, decompressed.
    """

    offset: int
    stop: int
    rows: int
    nulls: tuple[int, ...]
    is_compressed: bool
    nbytes: int


class Stream(NamedTuple):
    """What a stream consists of.

    Attributes:
        batches: The batches of rows.
        has_dictionaries: Whether there are dictionaries, which batches refer to.
        dictionary_nbytes: The size of all dictionaries, decompressed.
        has_end: Whether there is a mark of the end.
        stop: Where the stream ends.
    """

    batches: list[Batch]
    has_dictionaries: bool
    dictionary_nbytes: int
    has_end: bool
    stop: int


def stream_of(data: memoryview, start: int) -> Stream:
    """Go through the messages of a stream that begins at `start`.

    Raises:
        ValueError: A message is cut short, or is none.
    """
    batches: list[Batch] = []
    has_dictionaries, nbytes = False, 0
    at = start
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        head = at + 4
        if length == _CONTINUED:
            if head + 4 > len(data):
                break
            (length,) = struct.unpack_from("<I", data, head)
            head += 4
        if length == 0:
            return Stream(batches, has_dictionaries, nbytes, has_end=True, stop=head)
        table = data[head : head + length]
        if len(table) < length:
            message = f"the file is cut short: a message at {at} needs {length} bytes"
            raise ValueError(message)
        kind, body, header = _message(table, at)
        stop = head + length + body
        if body < 0 or stop > len(data):
            message = (
                f"the file is cut short: a batch at {at} ends at {stop}, the file at {len(data)}"
            )
            raise ValueError(message)
        if kind == _BATCH:
            rows, nulls, is_compressed = _batch(table, header, at)
            size = _size(table, header, data[stop - body : stop], at)
            _check_rows(max([rows, *(one for one, _ in _pairs(table, header, 1))]), size, at)
            batches.append(Batch(at, stop, rows, nulls, is_compressed, size))
        elif kind == _DICTIONARY:
            has_dictionaries = True
            nbytes += _size(table, _values_of(table, header, at), data[stop - body : stop], at)
        at = stop
    return Stream(batches, has_dictionaries, nbytes, has_end=False, stop=at)


def _message(table: memoryview, at: int) -> tuple[int, int, int]:
    """Return the kind of a message, the length of its body, and where its header is."""
    try:
        (root,) = struct.unpack_from("<I", table, 0)
        kind = _place(table, root, 1)
        header = _place(table, root, 2)
        length = _place(table, root, 3)
        if not kind or not header:
            message = f"the message at {at} has no header"
            raise ValueError(message)
        body = struct.unpack_from("<q", table, length)[0] if length else 0
        return table[kind], body, header + struct.unpack_from("<I", table, header)[0]
    except (struct.error, IndexError) as error:
        message = f"there is no message at {at}"
        raise ValueError(message) from error


def _batch(table: memoryview, header: int, at: int) -> tuple[int, tuple[int, ...], bool]:
    """Return the rows of a batch, its numbers of nulls, and whether it is compressed."""
    try:
        rows = _place(table, header, 0)
        count = struct.unpack_from("<q", table, rows)[0] if rows else 0
        nulls = tuple(one for _, one in _pairs(table, header, 1))
        is_compressed = bool(_place(table, header, 3))
    except struct.error as error:
        message = f"the batch at {at} is damaged"
        raise ValueError(message) from error
    if count < 0:
        message = f"the batch at {at} has {count} rows"
        raise ValueError(message)
    return count, nulls, is_compressed


def _values_of(table: memoryview, header: int, at: int) -> int:
    """Return where the batch of values of a dictionary is."""
    try:
        place = _place(table, header, 1)
        if place:
            return place + int(struct.unpack_from("<I", table, place)[0])
    except struct.error:
        pass
    message = f"the dictionary at {at} is damaged"
    raise ValueError(message)


def _check_rows(rows: int, size: int, at: int) -> None:
    """Refuse a batch with more rows or elements than its bytes can be for."""
    if rows > _ROWS_PER_BYTE * size + _ROWS_FREE:
        message = f"the batch at {at} claims {rows} values, but has {size} bytes"
        raise ValueError(message)


def _size(table: memoryview, header: int, body: memoryview, at: int) -> int:
    """Return the size of the body of a batch, decompressed."""
    is_compressed = _batch(table, header, at)[2]
    return _decompressed(table, header, body, at) if is_compressed else len(body)


def _decompressed(table: memoryview, header: int, body: memoryview, at: int) -> int:
    """Return the size that the buffers of a batch tell; each begins with its own."""
    try:
        starts = [start for start, length in _pairs(table, header, 2) if length >= _SIZE]
        if starts and not 0 <= min(starts) <= max(starts) <= len(body):
            message = f"the batch at {at} has buffers outside of its body"
            raise ValueError(message)
        sizes = [struct.unpack_from("<q", body, start)[0] for start in starts]
    except struct.error as error:
        message = f"the batch at {at} is damaged"
        raise ValueError(message) from error
    return sum(size for size in sizes if size > 0)


def _pairs(table: memoryview, header: int, field: int) -> list[tuple[int, int]]:
    """Return the pairs of numbers in a field of a table."""
    place = _place(table, header, field)
    if not place:
        return []
    first = place + struct.unpack_from("<I", table, place)[0]
    (number,) = struct.unpack_from("<I", table, first)
    return list(struct.iter_unpack("<qq", table[first + 4 : first + 4 + _PAIR * number]))


def _place(table: memoryview, root: int, field: int) -> int:
    """Return where a field of a table is; 0 if it has none."""
    (back,) = struct.unpack_from("<i", table, root)
    fields = root - back
    if fields < 0:
        message = "a table is damaged"
        raise ValueError(message)
    (size,) = struct.unpack_from("<H", table, fields)
    at = 4 + 2 * field
    if at + 2 > size:
        return 0
    offset: int = struct.unpack_from("<H", table, fields + at)[0]
    return root + offset if offset else 0
