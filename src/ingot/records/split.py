"""Which rows a condition selects, and which rows the parts of a split have."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ingot.records.indices import Numbers

_ROUNDING = 1e-9


def chosen_by(condition: Any, length: int) -> Numbers:  # noqa: ANN401 -- users pass anything
    """Return the positions at which a condition is true.

    Args:
        condition: A boolean for each row.
        length: The number of rows.

    Raises:
        ValueError: It is not.
    """
    chosen = np.asarray(condition)
    if chosen.dtype.kind in "iu" and chosen.ndim == 1:
        message = "expected one boolean per row, got indices: take(indices) has their rows"
        raise ValueError(message)
    if chosen.dtype != np.bool_ or chosen.shape != (length,):
        message = (
            f"expected a condition with one boolean for each of {length} rows, "
            f"got {chosen.dtype} of shape {chosen.shape}"
        )
        raise ValueError(message)
    return np.flatnonzero(chosen)


def parts_of(length: int, sizes: Sequence[Any], seed: int | None) -> list[Numbers]:
    """Return the positions of the rows in each part of a split, in order.

    Args:
        length: The number of rows.
        sizes: Fractions (float) or numbers of rows (int); the remainder is one more part.
        seed: Seed of the random assignment; None for consecutive rows.

    Raises:
        TypeError: The sizes are neither.
        ValueError: The sizes are negative, or more than there is.
    """
    ends = _ends_of(length, sizes)
    order = np.arange(length)
    if seed is not None:
        order = np.random.default_rng(seed).permutation(length)
    return [np.sort(places) for places in np.split(order, ends)]


def _ends_of(total: int, sizes: Sequence[Any]) -> list[int]:
    """Return where each part of `total` rows ends, except the last."""
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        sizes = sizes[0]
    kinds = {type(size) for size in sizes}
    if kinds not in ({int}, {float}):
        message = f"sizes must be all fractions (float) or all numbers of rows (int), got {sizes!r}"
        raise TypeError(message)
    whole = total if kinds == {int} else 1
    if min(sizes) < 0 or sum(sizes) > whole + _ROUNDING:
        message = f"sizes must not be negative or exceed {total} rows in total, got {sizes!r}"
        raise ValueError(message)
    cuts = (sum(sizes[: k + 1]) for k in range(len(sizes)))
    ends = [min(cut if kinds == {int} else round(cut * total), total) for cut in cuts]
    return ends[:-1] if sum(sizes) > whole - _ROUNDING else ends
