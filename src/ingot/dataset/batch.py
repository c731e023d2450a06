"""Many rows at once: what they have of each field."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot.dataset.spec import Field


def read(
    source: NativeRows,
    fields: Sequence[Field],
    numbers: Mapping[str, int],
    rows: npt.NDArray[np.int64],
) -> dict[str, Any]:
    """Return what `rows` have of each field, stacked to an array where that can be."""
    cells = [one for one in fields if one.kind == "cell"]
    packed = source.read_cells(rows, [numbers[one.name] for one in cells])
    read_cells = dict(zip((one.name for one in cells), packed, strict=True))
    found: dict[str, Any] = {}
    for one in fields:
        present = _present(source, one, numbers, rows)
        if one.kind == "column":
            values: Any = np.frombuffer(source.column(numbers[one.name], rows), one.codec.dtype)
        elif one.kind == "sequence":
            values = _sequences(one, *source.read_elements(rows, numbers[one.name]))
        else:
            values = _cells(one, read_cells[one.name], len(rows), present)
        if present is not None and not present.all():
            values = [
                value if there else None for value, there in zip(values, present, strict=True)
            ]
        found[one.name] = values
    return found


def _present(
    source: NativeRows, field: Field, numbers: Mapping[str, int], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_] | None:
    if not field.is_optional:
        return None
    return np.frombuffer(source.column(numbers[f"{field.name}?"], rows), np.bool_)


def _split(buffer: memoryview, offsets: bytearray) -> list[bytes]:
    ends = np.frombuffer(offsets, np.int64).tolist()
    return [bytes(buffer[a:b]) for a, b in pairwise(ends)]


def _cells(
    field: Field,
    packed: tuple[memoryview, bytearray, int],
    count: int,
    present: npt.NDArray[np.bool_] | None,
) -> Any:
    dtype, shape = field.codec.dtype, field.codec.shape
    buffer, offsets, common = packed
    if dtype is not None and not field.is_sequence:
        size = int(np.prod(shape)) * dtype.itemsize
        if common == size or count == 0:
            return np.frombuffer(buffer, dtype, count * int(np.prod(shape))).reshape(count, *shape)
    stored = _split(buffer, offsets)
    if field.is_sequence:
        return stacked([np.frombuffer(one, dtype) for one in stored])
    there = [True] * count if present is None else present.tolist()
    return stacked(
        [field.codec.decode(one) if has else None for one, has in zip(stored, there, strict=True)]
    )


def _sequences(
    field: Field, packed: tuple[memoryview, bytearray, int], counts: bytearray
) -> list[list[Any]]:
    values = iter([field.codec.decode(one) for one in _split(packed[0], packed[1])])
    each = np.frombuffer(counts, np.uint64).tolist()
    return [[next(values) for _ in range(count)] for count in each]


def stacked(values: list[Any]) -> Any:
    """Return arrays of the same type and shape as one array, and all else as it is."""
    first = values[0] if values else None
    if not isinstance(first, np.ndarray):
        return values
    if all(
        isinstance(one, np.ndarray) and one.shape == first.shape and one.dtype == first.dtype
        for one in values
    ):
        return np.stack(values)
    return values
