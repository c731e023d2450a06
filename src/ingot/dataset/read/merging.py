"""Batches of several reads as one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.source import Row
from ingot.dataset.spec import Field


def back(places: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the order that puts concatenated values back to their positions."""
    return np.argsort(np.concatenate(places), kind="stable")


def merged(found: Sequence[Row], order: npt.NDArray[np.int64], fields: Mapping[str, Field]) -> Row:
    """Merge the columns of several reads in the given order; stack what is alike."""
    return {
        name: _column([one[name] for one in found], order, field) for name, field in fields.items()
    }


def _column(found: Sequence[Any], order: npt.NDArray[np.int64], field: Field) -> Any:
    alike = {(one.shape[1:], one.dtype) if isinstance(one, np.ndarray) else None for one in found}
    if len(alike) == 1 and None not in alike:
        return np.concatenate(found)[order]
    values = [value for one in found for value in _rows(one, field)]
    return [values[k] for k in order.tolist()]


def _rows(values: Any, field: Field) -> Any:
    """Return the value of each row, as it would be among others that are not alike."""
    is_stacked = isinstance(values, np.ndarray) and field.kind == "sequence"
    return map(list, values) if is_stacked else values
