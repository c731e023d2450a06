"""Copying rows from one data set to another as they are stored, without decoding."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.selection import Selection
from ingot.dataset.spec import Spec
from ingot.threads import Begun

_STEP = 1024
_BYTES = 16 << 20


class PackedField(NamedTuple):
    """The values of a field in rows, as they are stored.

    Attributes:
        data: The values, concatenated.
        offsets: Where each begins, and where the last one ends, as int64.
        counts: For a sequence, the number of values in each row, as uint64.
    """

    data: bytes | bytearray | memoryview
    offsets: bytes
    counts: bytes | None = None

    def sizes(self, count: int) -> npt.NDArray[np.int64]:
        """Return the size of each row in bytes, for `count` rows."""
        ends = np.frombuffer(self.offsets, np.int64)
        if self.counts is not None:
            last = np.cumsum(np.frombuffer(self.counts, np.uint64).astype(np.int64))
            ends = ends[np.concatenate([[0], last])]
        sizes: npt.NDArray[np.int64] = np.diff(ends)[:count]
        return sizes

    def cut(self, start: int, stop: int) -> "PackedField":
        """Return the values of the rows from `start` to `stop`."""
        ends = np.frombuffer(self.offsets, np.int64)
        first, last, counts = start, stop, None
        if self.counts is not None:
            each = np.frombuffer(self.counts, np.uint64)
            first, last = int(each[:start].sum()), int(each[:stop].sum())
            counts = each[start:stop].tobytes()
        part = memoryview(self.data)[int(ends[first]) : int(ends[last])]
        return PackedField(part, (ends[first : last + 1] - ends[first]).tobytes(), counts)


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows as they are stored.

    Attributes:
        fields: The values of each field, in the order of a specification.
        count: The number of rows.
    """

    fields: list[PackedField]
    count: int

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the size of each row in bytes."""
        sizes: npt.NDArray[np.int64] = np.sum([one.sizes(self.count) for one in self.fields], 0)
        return sizes

    def cut(self, start: int, stop: int) -> "PackedRows":
        """Return the rows from `start` to `stop`."""
        return PackedRows([one.cut(start, stop) for one in self.fields], stop - start)


def packed(selection: Selection, spec: Spec) -> Iterator[PackedRows] | None:
    """Yield the rows of a selection for a data set with this specification, some at a time.

    Returns:
        None, if they must be decoded: the fields differ, or their source does not store values as
        an Ingot file does.
    """
    if dict(selection.spec) != dict(spec) or selection.source.is_recoded:
        return None
    return stored(selection, spec)


def stored(
    selection: Selection, spec: Spec, *, rows: int | None = None, most: int = _STEP
) -> Iterator[PackedRows]:
    """Yield the rows of a selection as an Ingot file stores them, reading ahead of the caller.

    Args:
        selection: The rows.
        spec: Its fields, with the codecs of Ingot.
        rows: The number of rows in each piece but the last; by default, they are of limited size.
        most: The largest such number otherwise.
    """
    source, start, begun = selection.source, 0, None
    names = [name for name, *_ in spec.stored()]
    step, most = source.together(selection.names) if source.is_recoded else (_STEP, most)
    step = step if rows is None else rows

    def read(start: int, step: int) -> PackedRows:
        numbers = selection.numbers(range(start, min(start + step, len(selection))))
        found = source.packed(names, numbers)
        return PackedRows([PackedField(*one) for one in found], len(numbers))

    try:
        while start < len(selection):
            found = read(start, step) if begun is None else begun.end()
            start += found.count
            fitting = _BYTES * found.count // max(1, int(found.sizes().sum()))
            step = rows or max(1, min(2 * step, fitting, max(most, _STEP)))
            begun = Begun(partial(read, start, step)) if start < len(selection) else None
            yield found
    finally:
        if begun is not None:
            begun.cancel()
