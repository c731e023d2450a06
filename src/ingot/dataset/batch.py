"""Many rows at once: what they have of each field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot.dataset import row
from ingot.dataset.spec import Field

Packed: TypeAlias = tuple[memoryview, bytearray, int]
Truths: TypeAlias = npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that are read together.

    Attributes:
        source: Where they are.
        path: What errors call that.
        places: The place of each field in it.
        rows: Their numbers.
    """

    source: NativeRows
    path: str
    places: Mapping[str, int]
    rows: npt.NDArray[np.int64]

    def read(self, fields: Sequence[Field]) -> dict[str, Any]:
        """Return what the rows have of each field, stacked to an array where that can be."""
        cells = [one for one in fields if one.kind == "cell"]
        packed = self.source.read_cells(self.rows, [self.places[one.name] for one in cells])
        read_cells = dict(zip((one.name for one in cells), packed, strict=True))
        found: dict[str, Any] = {}
        for one in fields:
            present = self._present(one)
            if one.kind == "cell":
                values = self._cells(one, read_cells[one.name], present)
            else:
                values = self._numbers(one) if one.kind == "column" else self._sequences(one)
            if present is not None and not present.all():
                pairs = zip(values, present, strict=True)
                values = [value if there else None for value, there in pairs]
            found[one.name] = values
        return found

    def _present(self, field: Field) -> Truths:
        if not field.is_optional:
            return None
        return np.frombuffer(self._column(f"{field.name}?"), np.bool_)

    def _column(self, name: str) -> bytearray:
        return self.source.column(self.places[name], self.rows)

    def _numbers(self, field: Field) -> Any:
        return np.frombuffer(self._column(field.name), field.codec.dtype)

    def _cells(self, field: Field, packed: Packed, present: Truths) -> Any:
        dtype, shape, count = field.codec.dtype, field.codec.shape, len(self.rows)
        if dtype is not None and not field.is_sequence:
            elements = int(np.prod(shape))
            if packed[2] == elements * dtype.itemsize or count == 0:
                return np.frombuffer(packed[0], dtype, count * elements).reshape(count, *shape)
        there = [True] * count if present is None else present.tolist()
        stored = zip(self.rows.tolist(), _split(packed), there, strict=True)
        return _stacked(
            [
                row.decode(field, [data], self.path, number) if has else None
                for number, data, has in stored
            ]
        )

    def _sequences(self, field: Field) -> list[Any]:
        packed, counts = self.source.read_elements(self.rows, self.places[field.name])
        stored = iter(_split(packed))
        each = zip(self.rows.tolist(), np.frombuffer(counts, np.uint64).tolist(), strict=True)
        return [
            row.decode(field, [next(stored) for _ in range(count)], self.path, number)
            for number, count in each
        ]


def _split(packed: Packed) -> list[bytes]:
    ends = np.frombuffer(packed[1], np.int64).tolist()
    return [bytes(packed[0][a:b]) for a, b in pairwise(ends)]


def _stacked(values: list[Any]) -> Any:
    """Return arrays of the same type and shape as one array, and all else as it is."""
    first = values[0] if values else None
    if not isinstance(first, np.ndarray):
        return values
    alike = (
        isinstance(one, np.ndarray) and one.shape == first.shape and one.dtype == first.dtype
        for one in values
    )
    return np.stack(values) if all(alike) else values
