"""Values of several rows as one array, where they are alike, and such batches as rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ingot.codecs.array import FixedArray
from ingot.dataset.spec import Field

_DIMENSIONS_MAX = 64
_LENGTH_MAX = 1 << 48


def picked(values: Any, picks: Sequence[tuple[int | None, ...]] | None) -> Any:
    """Return the picked numbers of each run."""
    if picks is None:
        return values
    each = zip(values, picks, strict=True)
    return stacked([value if value is None else value[slice(*one)] for value, one in each])


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


def rows_of(
    batch: Mapping[str, Any], fields: Mapping[str, Field], count: int, *, copy: bool
) -> list[dict[str, Any]]:
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
        if field.codec.own.dtype is None and field.kind == "cell":
            return [np.array(one) for one in values]  # Arrays without dimensions, stacked.
        return list(values) if isinstance(field.codec, FixedArray) else values.tolist()
    each = [_own(one) for one in values] if copy else list(values)
    is_stacked = isinstance(values, np.ndarray) and field.kind == "sequence"
    return [list(one) for one in each] if is_stacked else each


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) and value.base is not None else value
