"""`array_record.python.array_record_module`: a reader and a writer."""

import operator
import os
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.compat.array_record.errors import (
    CAUGHT,
    Caught,
    ObjectClosedError,
    RecordIndexError,
    translated,
)
from ingot.compat.array_record.options import parse_reader_options, parse_writer_options
from ingot.compat.handle import Closing, subject
from ingot.formats import arrayrecord

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike

__all__ = ["ArrayRecordReader", "ArrayRecordWriter"]

StrPath: TypeAlias = str | bytes | os.PathLike[str]
Indices: TypeAlias = Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]


class _Handle:
    """A file that may be closed, or may have failed."""

    def __init__(self, path: StrPath) -> None:
        self._path = os.fsdecode(path)
        self._is_open = True
        self._failure: Caught | None = None

    def ok(self) -> bool:
        """Return whether the file is open and has not failed."""
        return self._is_open and self._failure is None

    def is_open(self) -> bool:
        """Return whether it is not closed."""
        return self._is_open

    def _check(self) -> None:
        if self._failure is not None:
            raise translated(self._failure, self._path) from self._failure

    def _closed(self) -> ObjectClosedError:
        return ObjectClosedError(f"{self._path}: Object closed", self._path)


class ArrayRecordWriter(_Handle):
    """Writes records to a file that ArrayRecord itself can read.

    The file appears under its name when it is closed, and replaces an existing file. Errors with
    the file are raised by the first `write` or `close`, not by the constructor.

    Args:
        path: The file to write.
        options: Options as text, such as "group_size:1,zstd:3".
        **kwargs: Ignored.

    Raises:
        ValueError: An option is unknown or has an invalid value.
    """

    def __init__(self, path: StrPath, options: str = "", **kwargs: object) -> None:
        del kwargs
        arguments = parse_writer_options(options)
        super().__init__(path)
        self._writer: arrayrecord.ArrayRecordWriter | None = None
        try:
            self._writer = arrayrecord.ArrayRecordWriter(self._path, **arguments)
        except CAUGHT as error:
            self._failure = error

    def write(self, record: "BytesLike") -> None:
        """Write a record: all bytes of anything bytes-like.

        Raises:
            RuntimeError: The file cannot be written, or the writer is closed.
        """
        self._check()
        if self._writer is None or not self._is_open:
            raise self._closed()
        try:
            self._writer.append(record)
        except CAUGHT as error:
            self._failure = error
            raise translated(error, self._path) from error

    def close(self) -> None:
        """Finish the file. A second call does nothing, unless the first one failed.

        Raises:
            RuntimeError: The file cannot be written. An existing file stays.
        """
        was_open, self._is_open = self._is_open, False
        if was_open and self._writer is not None and self._failure is None:
            try:
                self._writer.close()
            except CAUGHT as error:
                self._failure = error
        if self._failure is not None:
            self._abandon()
        self._check()

    def _abandon(self) -> None:
        self._is_open = False
        if self._writer is not None:
            self._writer.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._abandon()

    def __del__(self) -> None:
        writer = getattr(self, "_writer", None)
        if writer is None or writer.closed:
            return
        count = len(writer)
        self._abandon()
        lost = subject(count, "record")
        message = f"{self._path}: the writer was never closed; its {lost} lost"
        warnings.warn(message, stacklevel=2)


class ArrayRecordReader(_Handle, Closing):
    """Reads records of a file, in order or at random.

    Errors with the file are raised by the first read, not by the constructor. Several threads
    and forked processes may read batches at the same time.

    Args:
        path: The file to read.
        options: Options as text, such as "readahead_buffer_size:16MB". They are checked and
            otherwise ignored.
        **kwargs: Ignored.

    Raises:
        ValueError: An option is unknown or has an invalid value.
    """

    def __init__(self, path: StrPath, options: str = "", **kwargs: object) -> None:
        del kwargs
        parse_reader_options(options)
        super().__init__(path)
        self._reader: arrayrecord.ArrayRecordReader | None = None
        self._num_records = 0
        self._position = 0
        self._stream: Iterator[bytes] | None = None
        self._writer_options: str | None = None
        try:
            self._reader = arrayrecord.ArrayRecordReader(self._path)
        except CAUGHT as error:
            self._failure = error
        else:
            self._num_records = len(self._reader)
            self._writer_options = self._reader.writer_options(0)

    @overload
    def read(self) -> bytes: ...
    @overload
    def read(self, indices: Indices, /) -> list[bytes]: ...
    @overload
    def read(self, start: SupportsIndex, stop: SupportsIndex, /) -> list[bytes]: ...
    def read(self, *arguments: Any) -> bytes | list[bytes]:
        """Return the next record, the records at `indices`, or those from `start` to `stop`.

        A batch is one native read, and does not change which record is the next.

        Raises:
            IndexError: There is no next record, or the range is empty or not in the file.
            RuntimeError: There is no record at an index, or the file is damaged or closed.
        """
        if not arguments:
            return self._next()
        if len(arguments) == 1:
            return self._many(_checked(arguments[0]))
        if len(arguments) > 2:  # noqa: PLR2004
            message = f"read() takes at most 2 arguments, got {len(arguments)}"
            raise TypeError(message)
        start, stop = map(operator.index, arguments)
        count = self.num_records()
        first, last = (k + count if k < 0 else k for k in (start, stop))
        if not 0 <= first < last <= count:
            message = f"{self._path}: [{start}, {stop}) is of range of [0, {count})"
            raise IndexError(message)
        return self._many(range(first, last))

    def read_all(self) -> list[bytes]:
        """Return all records."""
        return self._many(range(self._num_records))

    def seek(self, index: SupportsIndex) -> None:
        """Go to a record; to the end, if `index` is negative or after the last record."""
        position = operator.index(index)
        self.ingot_reader()
        count = self._num_records
        self._position = position if 0 <= position < count else count
        self._stream = None

    def record_index(self) -> int:
        """Return the number of the record that `read()` returns next."""
        return self._position if self.ok() else 0

    def num_records(self) -> int:
        """Return the number of records; 0 if the file cannot be read or is closed."""
        return self._num_records if self.ok() else 0

    def writer_options_string(self) -> str | None:
        """Return the options that the file was written with; None if it does not record them."""
        return self._writer_options

    def close(self) -> None:
        """Close the file. A second call does nothing.

        Raises:
            RuntimeError: The file could not be read.
        """
        self._is_open = False
        self._stream = None
        if self._reader is not None:
            self._reader.close()
        self._check()

    def ingot_reader(self) -> arrayrecord.ArrayRecordReader:
        """Return Ingot's own reader of the file, which has more functions.

        Raises:
            RuntimeError: The file cannot be read, or is closed.
        """
        self._check()
        if self._reader is None or not self._is_open:
            raise self._closed()
        return self._reader

    def _next(self) -> bytes:
        if self._stream is None:
            reader, rows = self.ingot_reader(), range(self._position, self._num_records)
            # The first record is read alone: after a `seek`, it may be the only one.
            self._stream = chain(map(reader.__getitem__, rows[:1]), reader.iter(rows[1:]))
        try:
            record = next(self._stream)
        except StopIteration:
            message = f"{self._path}: Out of range of num_records: {self._num_records}"
            raise IndexError(message) from None
        except CAUGHT as error:
            self._failure, self._stream = error, None
            raise translated(error, self._path) from error
        self._position += 1
        return record

    def _many(self, indices: Indices) -> list[bytes]:
        reader = self.ingot_reader()
        try:
            return reader[indices]
        except IndexError:
            wrong = next(k for k in map(operator.index, indices) if k >= self._num_records)
            message = f"{self._path}: index {wrong} out of bound {self._num_records}"
            raise RecordIndexError(message, self._path) from None
        except CAUGHT as error:
            raise translated(error, self._path) from error

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_stream": None}


def _checked(indices: Indices) -> Indices:
    """Return indices, booleans as integers; refuse negative ones."""
    if not isinstance(indices, Sequence | np.ndarray) or isinstance(indices, str | bytes):
        message = f"read() takes a sequence of integers, got {type(indices).__name__}"
        raise TypeError(message)
    if isinstance(indices, np.ndarray) and (indices.dtype.kind not in "iu" or indices.ndim != 1):
        message = f"read() takes a 1D array of integers, got {indices.ndim}D of {indices.dtype}"
        raise TypeError(message)
    numbers = (
        indices if isinstance(indices, np.ndarray) else [*map(int, map(operator.index, indices))]
    )
    if min(numbers, default=0) < 0:
        message = "read() takes no negative indices"
        raise TypeError(message)
    return numbers
