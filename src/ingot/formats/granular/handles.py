"""Bags in memory, or on other file systems by objects with `open`.

The engine reads and writes local files alone. Granular reaches buckets through path objects of
Python, and reads single records of them, so these are read through file objects here.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, pairwise
from typing import IO, Any, Protocol, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.errors import ClosedError, CorruptFileError, FormatError

LIMIT_BYTES = 8


class Openable(Protocol):
    """Something with `open`: a path, or a buffer."""

    def open(self, mode: str) -> IO[bytes]:
        """Open it."""


Content: TypeAlias = bytes | bytearray | memoryview | Openable


class HandleBag:
    """Records in a file that can be opened, or in memory.

    The constructor reads the table of limits. Several threads and forked processes may use it
    at the same time.

    Args:
        source: The records.
        limits: Their limits; None if they are at the end of `source`.
        cached: Whether to read all records now.

    Raises:
        CorruptFileError: The limits do not match the records.
    """

    def __init__(
        self, source: Content, limits: Content | None = None, *, cached: bool = False
    ) -> None:
        is_memory = isinstance(source, bytes | bytearray | memoryview)
        self._source = _content(source) if cached or is_memory else source
        self.path = "bytes in memory" if is_memory else str(source)
        self._start()
        size = self._size()
        if limits is None:
            self._limits, self.nbytes = self._read_tail(size), size
        else:
            table = _content(limits)
            self._limits = np.frombuffer(table, "<u8", len(table) // LIMIT_BYTES)
            self.nbytes = self._end() + LIMIT_BYTES * len(self._limits)
        if (self._limits[1:] < self._limits[:-1]).any() or self._end() > size:
            message = f"{self.path}: its limits do not match {size} bytes of records"
            raise CorruptFileError(message, self.path)

    def _start(self) -> None:
        self._process = os.getpid()
        self._idle: list[IO[bytes]] = []
        self._closed = False

    def _read_tail(self, size: int) -> npt.NDArray[np.uint64]:
        if size == 0:
            return np.empty(0, np.uint64)
        last = self._read(size - LIMIT_BYTES, size) if size >= LIMIT_BYTES else b""
        start = int.from_bytes(last, "little")
        if not last or start > size - LIMIT_BYTES or (size - start) % LIMIT_BYTES:
            message = (
                f"{self.path}: the last limit puts the table at {start}, which is "
                f"impossible in a file of {size} bytes"
            )
            raise CorruptFileError(message, self.path, offset=size)
        limits = np.frombuffer(self._read(start, size), "<u8")
        return limits[1:] if limits[0] == 0 else limits

    def _end(self) -> int:
        return int(self._limits[-1]) if len(self._limits) else 0

    def __len__(self) -> int:
        return len(self._limits)

    @overload
    def __getitem__(self, key: int, /) -> bytes: ...
    @overload
    def __getitem__(self, key: Sequence[int], /) -> list[bytes]: ...
    def __getitem__(self, key: int | Sequence[int], /) -> bytes | list[bytes]:
        """Return a record, or a list of records; adjacent ones are read together."""
        if isinstance(key, int):
            return self._run(key, 1)[0]
        runs = groupby(enumerate(key), lambda place: place[1] - place[0])
        each = ([row for _, row in run] for _, run in runs)
        return [record for rows in each for record in self._run(rows[0], len(rows))]

    def _run(self, start: int, count: int) -> list[bytes]:
        limits = [int(self._limits[start - 1]) if start else 0]
        limits += self._limits[start : start + count].tolist()
        data = self._read(limits[0], limits[-1])
        return [data[a - limits[0] : b - limits[0]] for a, b in pairwise(limits)]

    def _read(self, start: int, stop: int) -> bytes:
        if self._closed:
            message = f"{self.path}: the reader is closed"
            raise ClosedError(message, self.path)
        if isinstance(self._source, bytes):
            return self._source[start:stop]
        with self._opened() as file:
            file.seek(start)
            data = bytes(file.read(stop - start))
        if len(data) != stop - start:
            message = f"{self.path}: offset {start}: expected {stop - start} bytes, got {len(data)}"
            raise CorruptFileError(message, self.path, offset=start)
        return data

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """Lend an open file that no other thread uses, so that threads do not wait.

        The child of a fork starts with none, as it would share their positions.
        """
        if self._process != os.getpid():
            self._process, self._idle = os.getpid(), []
        try:
            file = self._idle.pop()
        except IndexError:
            file = self._source.open("rb")  # type: ignore[union-attr]
        yield file
        self._idle.append(file)

    def _size(self) -> int:
        if isinstance(self._source, bytes):
            return len(self._source)
        with self._opened() as file:
            return file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Close the files. A second call does nothing."""
        self._closed = True
        while self._process == os.getpid() and self._idle:
            self._idle.pop().close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("_source", "path", "_limits", "nbytes")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()


class HandleWriter:
    """Writes a bag to paths of another file system.

    Args:
        path: The records.
        limits: Their limits; None to append them to the records at `close`.

    Raises:
        FileExistsError: There is a bag with its limits at its end.
        FormatError: There is a bag whose writer died in the middle of a record.
    """

    def __init__(self, path: Any, limits: Any = None) -> None:
        self._count, self._end = 0, 0
        self._records: list[bytes] = []
        self._table = bytearray()
        if limits is None:
            if path.exists():
                message = f"{path}: the file already exists"
                raise FileExistsError(message)
            self._file, self._index = path.open("wb"), None
            return
        if limits.exists():
            self._resume(path, limits)
        self._file, self._index = path.open("ab"), limits.open("ab")

    def _resume(self, path: Any, limits: Any) -> None:
        table = _content(limits)
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
        self._count = len(table) // LIMIT_BYTES
        self._end = int.from_bytes(table[-LIMIT_BYTES:], "little")
        if len(table) % LIMIT_BYTES or size != self._end:
            message = (
                f"{path}: a writer died in the middle of a record: {size} bytes of records, "
                f"{len(table)} bytes of limits that end at {self._end}"
            )
            raise FormatError(message, str(path))

    @property
    def size(self) -> int:
        """Bytes of records and limits so far."""
        return self._end + LIMIT_BYTES * self._count

    def __len__(self) -> int:
        return self._count

    def append(self, record: bytes) -> int:
        """Append a record; return its number."""
        self._end += len(record)
        self._records.append(record)
        self._table += self._end.to_bytes(LIMIT_BYTES, "little")
        self._count += 1
        return self._count - 1

    def flush(self) -> None:
        """Write all records so far, then their limits."""
        self._file.write(b"".join(self._records))
        self._records.clear()
        self._file.flush()
        if self._index is not None:
            self._index.write(bytes(self._table))
            self._table.clear()
            self._index.flush()

    def close(self) -> None:
        """Finish the bag."""
        self.flush()
        if self._index is None:
            self._file.write(bytes(self._table))
        self.abandon()

    def abandon(self) -> None:
        """Leave what was flushed: nothing can be removed there."""
        for file in (self._index, self._file):
            if file is not None:
                file.close()


def _content(source: Any) -> bytes:
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    with source.open("rb") as file:
        return bytes(file.read())
