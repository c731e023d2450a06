"""Arrow files and streams, also known as Feather.

A stream is a sequence of messages, each with four bytes ff, the length of a table of Google's
FlatBuffers, that table, and a body. A file has the same between two magic words.
"""

import os
import struct
from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

from ingot._core import Region
from ingot.codecs.limit import check_decoded
from ingot.errors import CorruptFileError, FormatError, UnfinishedFileError, counted
from ingot.formats.arrow.blocks import CACHE
from ingot.formats.arrow.file import (
    ColumnFile,
    Path,
    batch_of,
    pyarrow,
    storage,
    translated,
    values_at,
)

ARROW = b"ARROW1"
_FRONT = 8
"""Where the stream in a file begins: after the magic word."""

_VIEWS = 1 << 16
"""The number of batches that are kept, which are views on the mapping."""

_CONTINUED = 0xFFFF_FFFF
_DICTIONARY, _BATCH = 2, 3
_PAIR = 16
_SIZE = 8
_ROWS_PER_BYTE = 8
_ROWS_FREE = 1 << 24
"""Rows that a batch may have without a byte: nulls need none."""


class ArrowFile(ColumnFile):
    """An Arrow file or stream in a mapping; a block is a batch of rows.

    Rows of uncompressed files are not copied before they are wanted. Arrays are validated when
    they are used for the first time, so that a damaged offset is an error.

    Args:
        path: The file.
        partial: Whether a stream that has no end is read, too.

    Attributes:
        start: Where the Arrow file begins, if it is inside of another.

    Raises:
        FormatError: It is not an Arrow file, or damaged.
        UnfinishedFileError: A stream has no end.
    """

    def __init__(self, path: str, *, partial: bool = False) -> None:
        super().__init__(path)
        self.start = 0
        self._owner = (os.getpid(), Lock())
        self._loaded: Any = None
        self._views: dict[tuple[int, tuple[Path, ...]], Any] = {}
        with translated(path):
            self._region = self._mapped()
            self._buffer = self._shown(pyarrow().py_buffer(self._region))
            view = memoryview(self._buffer)
            self._is_file = bytes(view[: len(ARROW)]) == ARROW
            if bytes(view[:4]) == b"FEA1":
                message = f"{path}: this is Feather version 1; write it again as version 2"
                raise FormatError(message, path)
            reader = self._reader()
            self.schema = reader.schema
            self._stream = stream_of(view, _FRONT if self._is_file else 0)
            if self._stream.dictionary_nbytes > len(view):
                check_decoded(self._stream.dictionary_nbytes)
        self._check_end(reader, partial=partial)
        self.counts = [one.rows for one in self._stream.batches]
        self.is_mapped = not any(one.is_compressed for one in self._stream.batches)
        with translated(path):  # A name may not be Unicode.
            self._places = _places(self.schema)

    def _mapped(self) -> Region:
        if not self.identity[0]:
            message = f"{self.path}: the file is empty"
            raise CorruptFileError(message, self.path)
        return Region(self.path)

    def _shown(self, whole: Any) -> Any:
        """Return the part of a mapped file that is the Arrow file."""
        return whole

    def check_unchanged(self) -> None:
        """Refuse a file that was changed, or could not be read.

        Raises:
            FormatError: It is one.
        """
        super().check_unchanged()
        if self._region.is_damaged:
            message = f"{self.path}: the device failed while the file was read"
            raise CorruptFileError(message, self.path)

    def _reader(self) -> Any:
        ipc = pyarrow("pyarrow.ipc")
        opened = ipc.open_file if self._is_file else ipc.open_stream
        return opened(pyarrow().BufferReader(self._buffer))

    def _check_end(self, reader: Any, *, partial: bool) -> None:
        """Refuse a file that has more, or fewer, batches than its end says."""
        told = self._stream
        if self._is_file:
            is_whole = len(told.batches) == reader.num_record_batches
        else:
            is_whole = not told.has_end or told.stop == self._buffer.size
        if not is_whole:
            message = f"{self.path}: the file is damaged: it continues after its last batch of rows"
            raise CorruptFileError(message, self.path, offset=self.start + told.stop)
        if told.has_end or self._is_file or partial:
            return
        rows = sum(one.rows for one in told.batches)
        message = (
            f"{self.path}: the stream has no end: its writer did not finish, or the file is "
            f"truncated; it has {counted(rows, 'row')}; ingot.open(path, partial=True) reads them"
        )
        raise UnfinishedFileError(message, self.path, rows)

    def has_nulls(self, path: Path) -> bool:
        """Return whether a batch counts nulls there."""
        nodes = [self._places.get(path[: k + 1]) for k in range(len(path))]
        return any(
            node is None or node >= len(one.nulls) or one.nulls[node] != 0
            for one in self._stream.batches
            for node in nodes
        )

    def read(self, block: int, paths: tuple[Path, ...]) -> Any:
        """Return values of a block: views on the mapping, or decompressed."""
        known = self._views.get((block, paths)) if self.is_mapped else None
        if known is not None:
            return known
        if self._owner[0] != os.getpid():
            self._owner, self._loaded = (os.getpid(), Lock()), None
        found = {path: CACHE.get((self.token, block, path)) for path in paths}
        with translated(self.path):
            batch = None
            for path, array in found.items():
                if array is None:
                    batch = self._batch(block) if batch is None else batch
                    found[path] = self._kept(block, path, batch)
            made = batch_of([found[path] for path in paths])
        if self.is_mapped:
            if len(self._views) >= _VIEWS:
                self._views = {}
            self._views[block, paths] = made
        return made

    def _kept(self, block: int, path: Path, batch: Any) -> Any:
        # Nothing may look at values, or at parts of structs, before all of it is known to be sound.
        column = batch.column(path[0])
        _validate(column)
        array = values_at(column, path[1:])
        if len(array) != self.counts[block]:
            message = f"{self.path}: batch {block}: column {path[0]!r} has other rows than the rest"
            raise CorruptFileError(message, self.path)
        nbytes = 0 if self.is_mapped else array.get_total_buffer_size()
        CACHE.put((self.token, block, path), array, nbytes)
        return array

    def _batch(self, block: int) -> Any:
        told = self._stream.batches[block]
        if told.is_compressed:
            check_decoded(told.nbytes)
        ipc = pyarrow("pyarrow.ipc")
        if self._is_file:
            batch = self._reader().get_batch(block)
        elif self._stream.has_dictionaries:
            batch = self._all()[block]
        else:
            message = self._buffer.slice(told.offset, told.stop - told.offset)
            batch = ipc.read_record_batch(message, self.schema)
        if batch.num_rows != told.rows:
            message = f"{self.path}: batch {block} has {batch.num_rows} rows, expected {told.rows}"
            raise CorruptFileError(message, self.path)
        return batch

    def _all(self) -> list[Any]:
        """Return all batches of a stream that has dictionaries, which may change in it."""
        with self._owner[1]:
            if self._loaded is None:
                self._loaded = list(self._reader())
            found: list[Any] = self._loaded
            return found

    def close(self) -> None:
        """Forget what was read; arrays that are in use keep the mapping."""
        self._loaded, self._views = None, {}
        CACHE.drop(self.token)


def _validate(array: Any) -> None:
    """Check all offsets of an array and of its parts; text is checked when it is decoded.

    Raises:
        ValueError: One is wrong.
    """
    is_text = pyarrow().types.is_string(array.type)
    (array.view(pyarrow().binary()) if is_text else array).validate(full=True)


def _places(schema: Any) -> dict[Path, int]:
    """Return the position of each column and each part of a struct among the nodes of a batch."""
    found: dict[Path, int] = {}
    numbers = iter(range(1 << 62))
    for field in schema:
        _visit(field, (), found, numbers)
    return found


def _visit(field: Any, above: Path, found: dict[Path, int], numbers: Iterator[int]) -> None:
    path = (*above, field.name)
    found.setdefault(path, next(numbers))
    kind = storage(field.type)
    if pyarrow().types.is_dictionary(kind):
        return
    for k in range(kind.num_fields):
        _visit(kind.field(k), path, found, numbers)


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
        ValueError: A message is truncated or malformed.
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
            message = f"the file is truncated: a message at {at} needs {length} bytes"
            raise ValueError(message)
        kind, body, header = _message(table, at)
        stop = head + length + body
        if body < 0 or stop > len(data):
            message = (
                f"the file is truncated: a batch at {at} ends at {stop}, the file at {len(data)}"
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
