"""Where the parts of a data set end."""

from collections.abc import Sequence
from typing import Any

_ROUNDING = 1e-9


def ends_of(total: int, sizes: Sequence[Any]) -> list[int]:
    """Return where each part of `total` rows but the last one ends.

    Args:
        total: How many rows there are.
        sizes: Fractions (float) or numbers of rows (int); what they leave is one more part.

    Raises:
        TypeError: They are neither.
        ValueError: There are none, they are negative, or more than there is.
    """
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        sizes = sizes[0]
    kinds = {type(size) for size in sizes}
    if kinds not in ({int}, {float}):
        message = f"parts are all fractions (float) or all numbers of rows (int), not {sizes!r}"
        raise TypeError(message)
    whole = total if kinds == {int} else 1
    if min(sizes) < 0 or sum(sizes) > whole + _ROUNDING:
        message = f"parts of {sizes!r} are more than there is, {total} rows, or less than nothing"
        raise ValueError(message)
    cuts = (sum(sizes[: k + 1]) for k in range(len(sizes)))
    ends = [min(cut if kinds == {int} else round(cut * total), total) for cut in cuts]
    return ends[:-1] if sum(sizes) > whole - _ROUNDING else ends
