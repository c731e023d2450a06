"""Iterating over rows in order, reading ahead."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np

from ingot.codecs.array import FixedArray
from ingot.dataset.read.source import ALL, Row, Selection
from ingot.dataset.spec import Field
from ingot.errors import FormatError, StorageError

ROWS = (1, 256)
"""How many rows to read together: at first, and at most, if their size is unknown."""

_BYTES = 8 << 20
_GUESS = 64

Read: TypeAlias = Callable[[range], Row]


class _Ahead:
    """Reads a block of rows on its own thread; in a forked child, on the caller's thread."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._process = os.getpid()
        self._thread = ThreadPoolExecutor(1, "ingot-iteration")
        self._has_thread = True
        self._next: Future[Row] | None = None
        self._places = range(0)

    def begin(self, places: range) -> None:
        """Start reading a block."""
        self._places, self._next = places, None
        if os.getpid() == self._process and self._has_thread:
            try:
                self._next = self._thread.submit(self._read, places)
            except RuntimeError:  # The system has no thread to spare.
                self._has_thread = False

    def end(self) -> Row:
        """Wait for the block and return it."""
        if self._next is None or os.getpid() != self._process:
            return self._read(self._places)
        return self._next.result()

    def close(self) -> None:
        if os.getpid() == self._process:
            self._thread.shutdown(wait=False, cancel_futures=True)


def blocks(selection: Selection, names: Sequence[str]) -> Iterator[tuple[range, Row | None]]:
    """Yield the values of consecutive rows in some fields, a block at a time.

    For a block that cannot be read, yield None; the caller then finds the damaged row.
    """
    count, most = selection.source.together(names)
    wanted = dict.fromkeys(names)
    ahead = _Ahead(lambda places: selection.read(selection.numbers(places), wanted))
    places = range(min(count, len(selection)))
    if places:
        ahead.begin(places)
    try:
        while places:
            found: Row | None
            try:
                found = ahead.end()
                count = _next_count(len(places), sum(map(_nbytes, found.values())), most)
            except (FormatError, StorageError):
                if len(places) == 1:
                    raise
                found = None
            following = range(places.stop, min(places.stop + count, len(selection)))
            if following:
                ahead.begin(following)
            yield places, found
            places = following
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


def rows(selection: Selection) -> Iterator[Row]:
    """Yield the rows one by one."""
    fields = selection.spec.fields
    all_of = dict.fromkeys(selection.names, ALL)
    for places, found in blocks(selection, selection.names):
        if found is not None:
            yield from rows_of(found, fields, len(places), copy=len(places) > 1)
            continue
        for place in places:
            yield selection.source.read_row(selection.number(place), all_of)


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
        return list(values) if isinstance(field.codec, FixedArray) else values.tolist()
    each = [_own(one) for one in values] if copy else list(values)
    is_stacked = isinstance(values, np.ndarray) and field.kind == "sequence"
    return [list(one) for one in each] if is_stacked else each


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) and value.base is not None else value
