"""Where the parts of a data set end."""

from collections.abc import Sequence
from typing import Any

_ROUNDING = 1e-9


def ends_of(total: int, sizes: Sequence[Any]) -> list[int]:
    """Return where each part of `total` rows ends, except the last.

    Args:
        total: The number of rows.
        sizes: Fractions (float) or numbers of rows (int); the remainder is one more part.

    Raises:
        TypeError: They are neither.
        ValueError: They are empty, negative, or more than the total.
    """
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
