"""How several rows of Ingot files are read together, field by field."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot._core import split_bytes
from ingot.dataset.read.decoding import decode
from ingot.dataset.read.plan import Ask, Packed, Request
from ingot.dataset.read.source import Picks
from ingot.dataset.read.stacking import picked, stacked
from ingot.dataset.spec import Field

Truths: TypeAlias = npt.NDArray[np.bool_]

_END = (1 << 64) - 1


class Unpacking:
    """Decodes stored values of several rows, field by field.

    Optional fields become lists. Other fields, including sequences of equal length, become one
    array where possible, else a list.

    Args:
        path: The name of the files in errors.
        rows: The row numbers.
        fields: The wanted fields.
        picks: The wanted elements of sequences.
    """

    def __init__(
        self,
        path: str,
        rows: npt.NDArray[np.int64],
        fields: Sequence[Field],
        picks: Mapping[str, Picks],
    ) -> None:
        self._path = path
        self._rows = rows
        self._fields = fields
        self._picks = picks

    def unpack(self, read: Mapping[str, Packed]) -> dict[str, Any]:
        """Return the values of each field; of an optional one, `read` also has `NAME?`."""
        found: dict[str, Any] = {}
        for one in self._fields:
            present = None
            if one.is_optional:
                present = np.frombuffer(read[f"{one.name}?"][0], np.bool_)
            if one.kind == "column":
                found[one.name] = _numbers(one, read[one.name][0], present)
            elif one.kind == "sequence":
                found[one.name] = self._sequences(one, read[one.name], present)
            else:
                values = self._cells(one, read[one.name], present)
                found[one.name] = picked(values, self._picks[one.name])
        return found

    def _cells(self, field: Field, packed: Packed, present: Truths | None) -> Any:
        data, all_offsets = packed[0], packed[1] or b""
        offsets = _without_gaps(all_offsets, present)
        values: Any = None
        if offsets is not None and field.is_sequence:
            values = _runs(field, data, offsets)
        elif offsets is not None:
            values = _decoded(field, data, offsets)
        if values is None:
            values = self._one_by_one(field, data, all_offsets, present)
        if present is not None:
            if isinstance(values, np.ndarray) and values.ndim == 1:
                values = map(np.array, values)  # Arrays without dimensions stay arrays.
            return _with_gaps(iter(values), present)
        return stacked(values)

    def _one_by_one(
        self, field: Field, data: memoryview | bytearray, offsets: bytes, present: Truths | None
    ) -> list[Any]:
        stored = zip(self._rows.tolist(), split_bytes(data, offsets), strict=True)
        return [
            decode(field, one, self._path, number)
            for k, (number, one) in enumerate(stored)
            if present is None or present[k]
        ]

    def _sequences(self, field: Field, packed: Packed, present: Truths | None) -> Any:
        data, offsets, lengths = packed[0], packed[1] or b"", packed[2] or b""
        counts = np.frombuffer(lengths, np.uint64).tolist()
        decoded = _decoded(field, data, offsets)
        alike = len(set(counts)) == 1 and present is None
        if alike and isinstance(decoded, np.ndarray):
            return decoded.reshape(len(counts), counts[0], *decoded.shape[1:])
        if decoded is not None:
            each = iter(decoded)
            values = [[next(each) for _ in range(count)] for count in counts]
        else:
            stored = iter(split_bytes(data, offsets))
            values = [
                decode(field, [next(stored) for _ in range(count)], self._path, number)
                for number, count in zip(self._rows.tolist(), counts, strict=True)
            ]
        return values if present is None else _with_gaps(iter(values), present, skip=True)


class IngotPlan(Unpacking):
    """The plan of rows in Ingot files.

    Args:
        source: The files.
        path: Their name in errors.
        places: The position of each field in them.
        rows: The row numbers.
        fields: The wanted fields.
        picks: The wanted elements of sequences.
    """

    def __init__(
        self,
        source: NativeRows,
        path: str,
        places: Mapping[str, int],
        rows: npt.NDArray[np.int64],
        *,
        fields: Sequence[Field],
        picks: Mapping[str, Picks],
    ) -> None:
        super().__init__(path, rows, fields, picks)
        self._asks: dict[str, Ask] = {}
        for one in fields:
            ranges = ranges_of(picks[one.name]) if one.kind == "sequence" else None
            self._asks[one.name] = (places[one.name], ranges)
            if one.is_optional:
                self._asks[f"{one.name}?"] = (places[f"{one.name}?"], None)
        self.requests: Sequence[Request] = [(source, rows, list(self._asks.values()))]

    def decode(self, found: Sequence[Any]) -> dict[str, Any]:
        """Return the values of each field."""
        return self.unpack(dict(zip(self._asks, found[0], strict=True)))


def ranges_of(picks: Picks) -> list[tuple[int, int, int]] | None:
    """Return the wanted elements of each row as the engine takes them; None for all."""
    if picks is None:
        return None
    return [(a or 0, _END if b is None else b, step or 1) for a, b, step in picks]


def _numbers(field: Field, numbers: memoryview | bytearray, present: Truths | None) -> Any:
    width = field.width
    if width is None or present is None:
        return np.frombuffer(numbers, field.codec.dtype)
    starts = range(0, len(numbers), width)
    each = [field.codec.decode(bytes(numbers[k : k + width])) for k in starts]
    return _with_gaps(iter(each), present, skip=True)


def _decoded(field: Field, data: memoryview | bytearray, offsets: bytes) -> Any:
    """Decode many cells; return None if the caller must decode them one by one."""
    try:
        return field.codec.decode_many(memoryview(data), offsets)
    except (ValueError, OverflowError):
        return None  # Decoding one by one finds the invalid cell.


def _without_gaps(offsets: bytes, present: Truths | None) -> bytes | None:
    """Return the offsets of the cells that are present; None if a missing one has bytes."""
    if present is None or present.all():
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


def _runs(field: Field, data: memoryview | bytearray, offsets: bytes) -> list[Any] | None:
    """Return the numbers of each cell; None if the size of a cell does not fit."""
    dtype = field.codec.dtype
    ends = np.frombuffer(offsets, np.int64)
    if dtype is None or (ends % dtype.itemsize).any():
        return None
    numbers = np.frombuffer(data, dtype, ends[-1] // dtype.itemsize)
    return [numbers[a:b] for a, b in pairwise((ends // dtype.itemsize).tolist())]
