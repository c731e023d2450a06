"""Reading several rows at once, field by field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot._core import split_bytes
from ingot.dataset import row
from ingot.dataset.source import Picks
from ingot.dataset.spec import Field

Packed: TypeAlias = tuple[memoryview, bytes, int]
Truths: TypeAlias = npt.NDArray[np.bool_]

_DIMENSIONS_MAX = 64
_LENGTH_MAX = 1 << 48
_END = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that are read together.

    Attributes:
        source: The source.
        path: The name of the source in errors.
        places: The position of each field in the source.
        rows: The row numbers.
    """

    source: NativeRows
    path: str
    places: Mapping[str, int]
    rows: npt.NDArray[np.int64]

    def read(self, fields: Sequence[Field], picks: Mapping[str, Picks]) -> dict[str, Any]:
        """Read fields of the rows, and the picked elements of sequences.

        Optional fields are returned as lists. Other fields, including sequences of equal length,
        are returned as one array where possible, else as a list.
        """
        cells = [one for one in fields if one.kind == "cell"]
        packed = self.source.read_cells(self.rows, [self.places[one.name] for one in cells])
        read_cells = dict(zip((one.name for one in cells), packed, strict=True))
        found: dict[str, Any] = {}
        for one in fields:
            if one.kind == "column":
                found[one.name] = self._numbers(one)
            elif one.kind == "sequence":
                found[one.name] = self._sequences(one, picks[one.name])
            else:
                values = self._cells(one, read_cells[one.name])
                found[one.name] = picked(values, picks[one.name])
        return found

    def _present(self, field: Field) -> Truths:
        if not field.is_optional:
            return np.ones(len(self.rows), np.bool_)
        return np.frombuffer(self._column(f"{field.name}?"), np.bool_)

    def _column(self, name: str) -> bytearray:
        return self.source.column(self.places[name], self.rows)

    def _numbers(self, field: Field) -> Any:
        numbers, width = self._column(field.name), field.width
        if width is None or not field.is_optional:
            return np.frombuffer(numbers, field.codec.dtype)
        starts = range(0, len(numbers), width)
        each = [field.codec.decode(bytes(numbers[k : k + width])) for k in starts]
        return _with_gaps(iter(each), self._present(field), skip=True)

    def _cells(self, field: Field, packed: Packed) -> Any:
        present = self._present(field)
        data, offsets = packed[0], _without_gaps(packed[1], present)
        values = None
        if offsets is not None and field.is_sequence:
            values = _runs(field, data, offsets)
        elif offsets is not None:
            values = _decoded(field, data, offsets)
        if values is None:
            values = self._one_by_one(field, packed, present)
        if field.is_optional:
            return _with_gaps(iter(values), present)
        return stacked(values)

    def _one_by_one(self, field: Field, packed: Packed, present: Truths) -> list[Any]:
        stored = zip(self.rows.tolist(), split_bytes(packed[0], packed[1]), strict=True)
        return [
            row.decode(field, data, self.path, number)
            for (number, data), there in zip(stored, present, strict=True)
            if there
        ]

    def _sequences(self, field: Field, picks: Picks) -> Any:
        ranges = None
        if picks is not None:
            ranges = [(a or 0, _END if b is None else b, step or 1) for a, b, step in picks]
        packed, lengths = self.source.read_elements(self.rows, self.places[field.name], ranges)
        counts = np.frombuffer(lengths, np.uint64).tolist()
        decoded = _decoded(field, packed[0], packed[1])
        alike = len(set(counts)) == 1 and not field.is_optional
        if alike and isinstance(decoded, np.ndarray):
            return decoded.reshape(len(counts), counts[0], *decoded.shape[1:])
        if decoded is not None:
            each = iter(decoded)
            values = [[next(each) for _ in range(count)] for count in counts]
        else:
            stored = iter(split_bytes(packed[0], packed[1]))
            values = [
                row.decode(field, [next(stored) for _ in range(count)], self.path, number)
                for number, count in zip(self.rows.tolist(), counts, strict=True)
            ]
        return _with_gaps(iter(values), self._present(field), skip=True)


def _decoded(field: Field, data: memoryview, offsets: bytes) -> Any:
    """Decode many cells; return None if the caller must decode them one by one."""
    try:
        return field.codec.decode_many(data, offsets)
    except (ValueError, OverflowError):
        return None  # Decoding one by one finds the invalid cell.


def picked(values: Any, picks: Picks) -> Any:
    """Return the picked numbers of each run."""
    if picks is None:
        return values
    each = zip(values, picks, strict=True)
    return stacked([value if value is None else value[slice(*one)] for value, one in each])


def _without_gaps(offsets: bytes, present: Truths) -> bytes | None:
    """Return the offsets of the cells that are present; None if a missing one has bytes."""
    if present.all():
        return offsets
    ends = np.frombuffer(offsets, np.int64)
    if np.diff(ends)[~present].any():
        return None
    return np.append(ends[:-1][present], ends[-1]).tobytes()


def _with_gaps(values: Iterator[Any], present: Truths, *, skip: bool = False) -> list[Any]:
    """Insert None where no value is present; with `skip`, in place of a value."""
    found = []
    for there in present.tolist():
        value = next(values) if there or skip else None
        found.append(value if there else None)
    return found


def _runs(field: Field, data: memoryview, offsets: bytes) -> list[Any] | None:
    """Return the numbers of each cell; None if the size of a cell does not fit."""
    dtype = field.codec.dtype
    ends = np.frombuffer(offsets, np.int64)
    if dtype is None or (ends % dtype.itemsize).any():
        return None
    numbers = np.frombuffer(data, dtype, ends[-1] // dtype.itemsize)
    return [numbers[a:b] for a, b in pairwise((ends // dtype.itemsize).tolist())]


def stacked(values: Any) -> Any:
    """Stack arrays of the same dtype and shape; return anything else unchanged."""
    first = values[0] if isinstance(values, list) and values else None
    if not isinstance(first, np.ndarray) or first.ndim == _DIMENSIONS_MAX:
        return values
    if max(first.shape, default=0) > _LENGTH_MAX:
        return values
    alike = (
        isinstance(one, np.ndarray) and one.shape == first.shape and one.dtype == first.dtype
        for one in values
    )
    return np.stack(values) if all(alike) else values
