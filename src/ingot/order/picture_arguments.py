"""Arguments of pictures, checked; the messages name them."""

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

Range: TypeAlias = tuple[float, float]

_SIDE_MAX = 65_535


def field_name_of(field: Any) -> str:
    """Return the name of a field."""
    if not isinstance(field, str):
        message = f"field is the name of a field, not {type(field).__name__}"
        raise TypeError(message)
    return field


def one_of(name: str, found: Any, known: Sequence[Any]) -> Any:
    """Return what is among known values."""
    if isinstance(found, bool) or found not in known:
        texts = " or ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in known)
        message = f"{name} is {texts}, not {found!r:.80}"
        raise ValueError(message)
    return found


def side_of(name: str, side: SupportsIndex) -> int:
    """Return a number of pixels."""
    number = operator.index(side)
    if not 1 <= number <= _SIDE_MAX:
        message = f"{name} is from 1 to {_SIDE_MAX} pixels, got {number}"
        raise ValueError(message)
    return number


def size_of(size: Any) -> tuple[int, int]:
    """Return height and width."""
    if hasattr(size, "__index__"):
        return side_of("size", size), side_of("size", size)
    match size:
        case (height, width):
            return side_of("size", height), side_of("size", width)
    message = f"size is a number of pixels, or (height, width), not {size!r:.80}"
    raise TypeError(message)


def number_of(name: str, value: Any) -> float:
    """Return a finite number."""
    if isinstance(value, bool):
        message = f"{name} is a number, such as 0.5, not {value}"
        raise TypeError(message)
    try:
        number = float(value)
    except (TypeError, ValueError):
        message = f"{name} is a number, not {value!r:.80}"
        raise TypeError(message) from None
    if not np.isfinite(number):
        message = f"{name} is finite, got {number}"
        raise ValueError(message)
    return number


def range_of(name: str, bounds: Any, most: float = float("inf")) -> Range:
    """Return the least and the largest value of a range of positive numbers."""
    match bounds:
        case (low, high):
            least, largest = number_of(name, low), number_of(name, high)
        case _:
            message = f"{name} is the least and the largest value, not {bounds!r:.80}"
            raise TypeError(message)
    if not 0 < least <= largest <= most:
        limit = "" if most == float("inf") else f" <= {most:g}"
        message = f"{name} is (a, b) with 0 < a <= b{limit}, got ({least:g}, {largest:g})"
        raise ValueError(message)
    return least, largest


def per_colour(name: str, values: Any, colours: int) -> tuple[float, ...] | None:
    """Return a number for each colour; None if there is none."""
    if values is None:
        return None
    given = values if isinstance(values, Sequence | np.ndarray) else [values] * colours
    numbers = tuple(number_of(name, one) for one in given)
    if len(numbers) != colours:
        message = f"{name} has a number for each of {colours} colours, got {len(numbers)}"
        raise ValueError(message)
    return numbers
