"""Arrow files and streams, also known as Feather."""

import os
from collections.abc import Iterator
from threading import Lock
from typing import Any

from ingot._core import Region
from ingot.codecs.limit import check_decoded
from ingot.errors import CorruptFileError, FormatError, UnfinishedFileError, counted
from ingot.formats.arrow.cache import CACHE
from ingot.formats.arrow.file import ColumnFile, Path, batch_of, values_at
from ingot.formats.arrow.library import pyarrow, translated
from ingot.formats.arrow.location import ARROW
from ingot.formats.arrow.messages import stream_of
from ingot.formats.arrow.types import storage

_FRONT = 8
"""Where the stream in a file begins: behind the magic word."""

_VIEWS = 1 << 16
"""The number of batches that are kept, which are views on the mapping."""


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
        """Refuse a file that has more, or fewer, batches than its end tells."""
        told = self._stream
        if self._is_file:
            is_whole = len(told.batches) == reader.num_record_batches
        else:
            is_whole = not told.has_end or told.stop == self._buffer.size
        if not is_whole:
            message = f"{self.path}: the file is damaged: it goes on behind its last batch of rows"
            raise CorruptFileError(message, self.path, offset=self.start + told.stop)
        if told.has_end or self._is_file or partial:
            return
        rows = sum(one.rows for one in told.batches)
        message = (
            f"{self.path}: the stream has no end: its writer did not finish, or the file is cut "
            f"short; it has {counted(rows, 'row')}; ingot.open(path, partial=True) reads them"
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
