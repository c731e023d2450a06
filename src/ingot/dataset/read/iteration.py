"""Iterating over rows, in order or along a stream of indices, reading ahead."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import SupportsIndex

import numpy as np

from ingot.dataset.read.ahead import Pace, Ranges, ReadAhead
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import ALL, Row
from ingot.dataset.read.stacking import rows_of
from ingot.errors import FormatError, StorageError
from ingot.records.indices import Numbers

_BYTES = 8 << 20


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
