"""Whether two pieces hold the same values, and where they differ."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ingot.dataset.write.packed import PackedRows
from ingot.formats.content import Columns, Piece
from ingot.records import Batch


class Difference(NamedTuple):
    """Where two pieces differ.

    Attributes:
        row: The row, counted from the first of the piece.
        field: The field; None for records.
    """

    row: int
    field: str | None


def difference(expected: Piece, found: Piece) -> Difference | None:
    """Return the first place where two pieces differ; None if they are the same."""
    if isinstance(expected, dict):
        return _columns(expected, found if isinstance(found, dict) else {})
    if isinstance(expected, Batch):
        return _batches(expected, found)
    if expected == found:
        return None
    for k, (one, other) in enumerate(zip(expected, found, strict=False)):
        if isinstance(one, PackedRows):
            if not isinstance(other, PackedRows) or not _same_packed(one, other):
                return Difference(k, None)
        elif one != other:
            return Difference(k, None)
    return None if len(expected) == len(found) else Difference(min(len(expected), len(found)), None)


def _batches(expected: Batch, found: Batch) -> Difference | None:
    ends = int(expected.offsets[-1])
    if np.array_equal(expected.offsets, found.offsets) and np.array_equal(
        expected.data[:ends], found.data[:ends]
    ):
        return None
    each = enumerate(zip(expected, found, strict=True))
    return next(Difference(k, None) for k, (one, other) in each if not np.array_equal(one, other))


def _same_packed(one: PackedRows, other: PackedRows) -> bool:
    def content(rows: PackedRows) -> list[tuple[memoryview, bytes, bytes | None]]:
        ends = [int(np.frombuffer(field.offsets, np.int64)[-1]) for field in rows.fields]
        each = zip(rows.fields, ends, strict=True)
        return [(memoryview(field.data)[:end], field.offsets, field.counts) for field, end in each]

    return one.count == other.count and content(one) == content(other)


def _columns(expected: Columns, found: Columns) -> Difference | None:
    places = [
        Difference(row, name)
        for name, values in expected.items()
        if (row := _first_difference(values, found.get(name))) is not None
    ]
    return min(places, default=None)


def _first_difference(expected: Any, found: Any) -> int | None:
    if found is None:
        return 0
    if isinstance(expected, np.ndarray) and isinstance(found, np.ndarray) and same(expected, found):
        return None
    each = enumerate(zip(expected, found, strict=False))
    short = min(len(expected), len(found)) if len(expected) != len(found) else None
    return next((k for k, (one, other) in each if not same(one, other)), short)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same, as different formats return them.

    A number equals an array without dimensions, bytes equal a run of bytes, a list of numbers
    equals an array of them, an empty list equals no arrays of any shape, and NaN equals NaN.
    """
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return _are_empty(one, other) or _same_arrays(_array(one), _array(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float | np.floating) and isinstance(other, float | np.floating):
        return bool(np.array_equal(one, other, equal_nan=True))
    return bool(one == other)


def _are_empty(one: Any, other: Any) -> bool:
    """Return whether one is an empty list, and the other one no arrays at all."""
    has_list = isinstance(one, list) or isinstance(other, list)
    return has_list and np.ndim(one) > 0 and np.ndim(other) > 0 and len(one) == len(other) == 0


def _array(value: Any) -> Any:
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    return np.asarray(value)


def _same_arrays(one: Any, other: Any) -> bool:
    if one.shape != other.shape:
        return False
    if one.size == 0 or one.dtype.kind == other.dtype.kind == "O":
        return bool(np.array_equal(one, other))
    if one.dtype.kind != other.dtype.kind and not {one.dtype.kind, other.dtype.kind} <= set("iu"):
        return False
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
