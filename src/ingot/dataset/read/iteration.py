"""Iterating over rows, in order or along a stream of indices, reading ahead."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from ingot.codecs.array import FixedArray
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import ALL, Row
from ingot.dataset.spec import Field
from ingot.errors import FormatError, StorageError
from ingot.records.indices import Numbers

ROWS = (1, 256)
"""How many rows to read together: at first, and at most, if their size is unknown."""

_BYTES = 8 << 20
_GUESS = 64

Read: TypeAlias = Callable[[Numbers], Row]


class _Ahead:
    """Reads a block of rows on its own thread; in a forked child, on the caller's thread."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._process = os.getpid()
        self._thread = ThreadPoolExecutor(1, "ingot-iteration")
        self._has_thread = True
        self._next: Future[Row] | None = None
        self._numbers = np.empty(0, np.int64)

    def begin(self, numbers: Numbers) -> None:
        """Start reading a block."""
        self._numbers, self._next = numbers, None
        if os.getpid() == self._process and self._has_thread:
            try:
                self._next = self._thread.submit(self._read, numbers)
            except RuntimeError:  # The system has no thread to spare.
                self._has_thread = False

    def end(self) -> Row:
        """Wait for the block and return it."""
        if self._next is None or os.getpid() != self._process:
            return self._read(self._numbers)
        return self._next.result()

    def close(self) -> None:
        if os.getpid() == self._process:
            self._thread.shutdown(wait=False, cancel_futures=True)


class _InOrder:
    """The rows of a selection, from the first to the last."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._start = 0

    def take(self, count: int) -> Numbers:
        """Return the numbers of the next rows, at most `count`."""
        places = range(self._start, min(self._start + count, len(self._selection)))
        self._start = places.stop
        return self._selection.numbers(places)

    def check(self) -> None:
        """Do nothing: no index is wrong."""


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
    count, most = selection.source.together(names)
    wanted = dict.fromkeys(names)
    ahead = _Ahead(lambda numbers: selection.read(numbers, wanted))
    stream = _InOrder(selection) if indices is None else _Stream(selection, indices)
    numbers = stream.take(count)
    if len(numbers):
        ahead.begin(numbers)
    try:
        while len(numbers):
            found: Row | None
            try:
                found = ahead.end()
                count = _next_count(len(numbers), sum(map(_nbytes, found.values())), most)
            except (FormatError, StorageError):
                if len(numbers) == 1:
                    raise
                found = None
            following = stream.take(count)
            if len(following):
                ahead.begin(following)
            yield numbers, found
            numbers = following
        stream.check()
    finally:
        ahead.close()


def _next_count(count: int, nbytes: int, most: int) -> int:
    """Return how many rows to read next, given the bytes of the last block."""
    fitting = _BYTES * count // max(1, nbytes)
    return max(1, min(2 * count, fitting, most))


def _nbytes(values: Any) -> int:
    if isinstance(values, np.ndarray):
        return values.nbytes
    if isinstance(values, bytes | str):
        return len(values)
    return sum(map(_nbytes, values)) if isinstance(values, list | tuple) else _GUESS


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


def rows_of(batch: Row, fields: Mapping[str, Field], count: int, *, copy: bool) -> list[Row]:
    """Cut a batch of columns into rows.

    Args:
        batch: The columns, as `Selection.read` returns them.
        fields: The fields.
        count: The number of rows.
        copy: Whether to copy arrays, or return views on the memory of the batch.
    """
    if not batch:
        return [{} for _ in range(count)]
    each = [_each(fields[name], values, copy=copy) for name, values in batch.items()]
    return [dict(zip(batch, values, strict=True)) for values in zip(*each, strict=True)]


def _each(field: Field, values: Any, *, copy: bool) -> list[Any]:
    """Return the value of each row, with the type that it has in a single row."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if field.codec.dtype is None and field.kind == "cell":
            return [np.array(one) for one in values]  # Arrays without dimensions, stacked.
        return list(values) if isinstance(field.codec, FixedArray) else values.tolist()
    each = [_own(one) for one in values] if copy else list(values)
    is_stacked = isinstance(values, np.ndarray) and field.kind == "sequence"
    return [list(one) for one in each] if is_stacked else each


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) and value.base is not None else value
