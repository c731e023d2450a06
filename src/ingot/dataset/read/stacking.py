"""Values of several rows as one array, where they are alike."""

from typing import Any

import numpy as np

from ingot.dataset.read.source import Picks

_DIMENSIONS_MAX = 64
_LENGTH_MAX = 1 << 48


def picked(values: Any, picks: Picks) -> Any:
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
