"""Copying rows from one data set to another as they are stored, without decoding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.arrow import ArrowRows
from ingot.dataset.read.chain import Chain
from ingot.dataset.read.images import ImageRows
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Source
from ingot.dataset.read.zipped import Zipped
from ingot.dataset.spec import Spec

Numbers: TypeAlias = npt.NDArray[np.int64]

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
        None, if they must be decoded: the fields differ, or they are in files of other formats.
    """
    if dict(selection.spec) != dict(spec) or not _is_stored(selection.source):
        return None
    return _packed(selection, [name for name, *_ in spec.stored()])


def _is_stored(source: Source) -> bool:
    if isinstance(source, Chain | Zipped):
        return all(_is_stored(one.source) for one in source.parts)
    return isinstance(source, IngotSource | ArrowRows | ImageRows)


def _packed(selection: Selection, names: list[str]) -> Iterator[PackedRows]:
    step, start = _STEP, 0
    while start < len(selection):
        places = np.arange(start, min(start + step, len(selection)))
        numbers = selection.numbers(places)
        found = _fields(selection.source, names, numbers)
        rows = PackedRows(found, len(numbers))
        yield rows
        start += len(numbers)
        nbytes = int(rows.sizes().sum())
        step = max(1, min(_STEP, _BYTES * len(numbers) // max(1, nbytes)))


def _fields(source: Source, names: Sequence[str], numbers: Numbers) -> list[PackedField]:
    if isinstance(source, IngotSource | ArrowRows | ImageRows):
        return [PackedField(*one) for one in source.read_packed(names, numbers)]
    if isinstance(source, Zipped):
        found: dict[str, PackedField] = {}
        for part in source.parts:
            own = [name for name in names if source.owner(name.removesuffix("?")) is part]
            found |= zip(own, _fields(part.source, own, part.numbers(numbers)), strict=True)
        return [found[name] for name in names]
    if isinstance(source, Chain):
        runs = [_fields(part.source, names, own) for part, own in source.runs(numbers)]
        return (
            runs[0] if len(runs) == 1 else [_joined(list(one)) for one in zip(*runs, strict=True)]
        )
    message = f"{source.path}: the rows are not in Ingot files"
    raise TypeError(message)


def _joined(parts: list[PackedField]) -> PackedField:
    """Concatenate the values of several runs of rows."""
    ends = [np.frombuffer(one.offsets, np.int64) for one in parts]
    starts = np.cumsum([0, *(int(one[-1]) for one in ends)])
    offsets = [one[:-1] + start for one, start in zip(ends, starts, strict=False)]
    data = bytearray().join(
        memoryview(one.data)[: int(end[-1])] for one, end in zip(parts, ends, strict=True)
    )
    counts = None if parts[0].counts is None else b"".join(one.counts or b"" for one in parts)
    return PackedField(data, np.append(np.concatenate(offsets), starts[-1]).tobytes(), counts)
