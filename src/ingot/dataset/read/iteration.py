"""Iterating over rows, in order or along a stream of indices, reading ahead in bounded memory."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Generic, Self, SupportsIndex, TypeVar

import numpy as np

from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import ALL, Row
from ingot.dataset.read.values import rows_of
from ingot.errors import FormatError, StorageError
from ingot.records.batch import Batch
from ingot.records.indices import Numbers

P = TypeVar("P", bound=Sized)
T = TypeVar("T")

_BYTES = 8 << 20
_GUESS = 64


class Pace:
    """How many rows to read together, by the sizes of the pieces so far.

    Args:
        nbytes: The size that a piece should have.
        most: The most rows of a piece.
        first: The rows of the first piece.

    Attributes:
        count: How many rows to read next.
    """

    def __init__(self, nbytes: int, most: int, first: int = 1) -> None:
        self._nbytes = nbytes
        self._most = most
        self.count = first

    def expect(self, rows: int, nbytes: int) -> Self:
        """Begin with pieces that fit if so many rows have so many bytes."""
        self.count = self._fitting(rows, nbytes)
        return self

    def learn(self, rows: int, nbytes: int) -> None:
        """Take note of the size of a piece; the next ones at most double."""
        self.count = min(2 * self.count, self._fitting(rows, nbytes))

    def _fitting(self, rows: int, nbytes: int) -> int:
        return max(1, min(self._most, self._nbytes * rows // max(1, nbytes)))


class Ranges:
    """The rows of a range, some at a time."""

    def __init__(self, rows: range) -> None:
        self._left = rows

    def take(self, count: int) -> range:
        """Return the next rows, at most `count`; an empty range after the last."""
        taken, self._left = self._left[:count], self._left[count:]
        return taken


class ReadAhead(Generic[P, T]):
    """An iterator of pieces and what is read of them; threads read some of them ahead.

    In the child of a fork, and where the system has no thread to spare, the caller's thread
    reads.

    Args:
        read: Reads a piece. If it returns None, nothing is learned from the piece.
        take: Returns the next piece, of at most so many rows; an empty one ends the iteration.
        pace: How many rows a piece has.
        threads: How many threads read.
    """

    def __init__(
        self, read: Callable[[P], T], take: Callable[[int], P], pace: Pace, threads: int = 1
    ) -> None:
        self._read = read
        self._take = take
        self._pace = pace
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "ingot-ahead")
        self._process = os.getpid()
        self._begun: deque[tuple[P, Future[T] | None]] = deque()
        self._is_over = False

    def __iter__(self) -> Iterator[tuple[P, T]]:
        # A thread that is done before the piece that is waited for has another one to read. A
        # single thread begins once it is known how large its piece should be.
        most = self._threads + (self._threads > 1)
        while True:
            self._begin(most)
            if not self._begun:
                return
            piece, future = self._begun.popleft()
            found = self._read(piece) if future is None or self._is_child else future.result()
            if found is not None:
                self._pace.learn(len(piece), size_of(found))
            self._begin(self._threads)
            yield piece, found

    @property
    def _is_child(self) -> bool:
        return os.getpid() != self._process

    def _begin(self, most: int) -> None:
        """Begin to read pieces until there are so many."""
        while len(self._begun) < most and not self._is_over:
            piece = self._take(self._pace.count)
            self._is_over = not len(piece)
            if not self._is_over:
                self._begun.append((piece, self._submit(piece)))

    def _submit(self, piece: P) -> Future[T] | None:
        if self._is_child:
            return None
        try:
            return self._pool.submit(self._read, piece)
        except RuntimeError:  # The system has no thread to spare.
            return None

    def close(self, *, wait: bool) -> None:
        """Begin no other piece, and wait for those that are being read if `wait` says so."""
        if not self._is_child:
            self._pool.shutdown(wait=wait, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(wait=True)


def size_of(found: Any) -> int:
    """Return about how many bytes of memory something takes that was read."""
    if isinstance(found, bytes | str):
        return len(found)
    if isinstance(found, Batch):
        return found.data.nbytes
    if isinstance(found, list | tuple):
        return sum(map(size_of, found))
    if isinstance(found, Mapping):
        return sum(map(size_of, found.values()))
    if hasattr(found, "nbytes"):  # An array, or a table of Arrow.
        return int(found.nbytes)
    return int(found.sizes().sum()) if hasattr(found, "sizes") else _GUESS


class _Stream:
    """The rows along a stream of indices, which may be infinite.

    Args:
        selection: The rows that the indices refer to.
        indices: The indices.
    """

    def __init__(self, selection: Selection, indices: Iterable[SupportsIndex]) -> None:
        self._selection = selection
        self._indices = iter(indices)
        self._error: BaseException | None = None

    def take(self, count: int) -> Numbers:
        """Return the numbers of the next rows, at most `count`, up to the first wrong index."""
        found: list[int] = []
        try:
            if self._error is None:
                found.extend(map(self._selection.number, islice(self._indices, count)))
        except Exception as error:  # noqa: BLE001 -- the rows before it come first
            self._error = error
        return np.array(found, np.int64)

    def check(self) -> None:
        """Raise what the stream, or an index, has raised."""
        if self._error is not None:
            raise self._error


def blocks(
    selection: Selection, names: Sequence[str], indices: Iterable[SupportsIndex] | None = None
) -> Iterator[tuple[Numbers, Row | None]]:
    """Yield the numbers of rows and their values in some fields, a block at a time.

    For a block that cannot be read, yield None; the caller then finds the damaged row.

    Args:
        selection: The rows.
        names: The fields.
        indices: Which rows, in order; None for all.

    Raises:
        IndexError: An index is out of range; raised after the rows before it.
    """
    first, most = selection.source.together(names)
    wanted = dict.fromkeys(names)

    def read(numbers: Numbers) -> Row | None:
        try:
            return selection.read(numbers, wanted)
        except (FormatError, StorageError):
            if len(numbers) == 1:
                raise
            return None

    ranges = Ranges(range(len(selection)))
    stream = None if indices is None else _Stream(selection, indices)

    def take(count: int) -> Numbers:
        return selection.numbers(ranges.take(count)) if stream is None else stream.take(count)

    ahead = ReadAhead(read, take, Pace(_BYTES, most, first))
    try:
        yield from ahead
        if stream is not None:
            stream.check()
    finally:
        ahead.close(wait=False)


def rows(selection: Selection, indices: Iterable[SupportsIndex] | None = None) -> Iterator[Row]:
    """Yield the rows one by one: those at the indices, or all."""
    fields = selection.spec.fields
    all_of = dict.fromkeys(selection.names, ALL)
    for numbers, found in blocks(selection, selection.names, indices):
        if found is not None:
            yield from rows_of(found, fields, len(numbers), copy=len(numbers) > 1)
            continue
        for number in numbers.tolist():
            yield selection.source.read_row(number, all_of)
