"""Arguments of orders and pictures, checked."""

import inspect
import operator
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset import Dataset
from ingot.dataset.read.selection import field_of

Indices: TypeAlias = Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]
Lengths: TypeAlias = str | npt.ArrayLike | Sequence[npt.ArrayLike]
Plain: TypeAlias = str | tuple[npt.NDArray[np.int64], ...]
Range: TypeAlias = tuple[float, float]

INT64_MAX = (1 << 63) - 1
"""Positions are below this, also those of an order without end."""

_SEEDS = 1 << 64
_SIDE_MAX = 65_535


class Samples(Protocol):
    """Samples by number: a data set, a reader, a list, or an object of your own."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Any: ...


def integer_of(number: SupportsIndex, name: str) -> int:
    """Return an integer; a bool is not one.

    Raises:
        TypeError: It is not one; the message names the argument.
    """
    if not isinstance(number, bool | np.bool_):
        with suppress(TypeError):
            return operator.index(number)
    raise TypeError(f"{name} is an integer, not {number!r:.80}")


def seed_of(seed: SupportsIndex) -> int:
    """Return a seed: an integer of 64 bits."""
    number = integer_of(seed, "a seed")
    if not 0 <= number < _SEEDS:
        raise ValueError(f"a seed is at least 0 and below 2^64, got {number}")
    return number


def count_of(number: SupportsIndex, name: str, least: int = 0) -> int:
    """Return a number that is at least `least` and fits into 63 bits."""
    count = integer_of(number, name)
    if not least <= count <= INT64_MAX:
        raise ValueError(f"{name} is at least {least} and below 2^63, got {count}")
    return count


def integers_of(values: Any, name: str) -> npt.NDArray[np.int64]:
    """Return integers as an array.

    Raises:
        TypeError: They are not integers.
        ValueError: They have more than one dimension, or one does not fit into 64 bits.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} have one dimension, got {array.ndim}")
    if not len(array):
        return np.empty(0, np.int64)
    if array.dtype.kind == "O" and all(isinstance(one, int) for one in array):
        raise ValueError(f"{name} fit into 64 bits, got {max(array, key=abs)}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} are integers, got {array.dtype}")
    if array.dtype == np.uint64 and array.max() > INT64_MAX:
        raise ValueError(f"{name} are below 2^63, got {array.max()}")
    return np.ascontiguousarray(array, np.int64)


def lengths_of(lengths: Lengths, num_sources: int) -> Plain:
    """Return the name of a field, or an array of lengths for each source."""
    if isinstance(lengths, str):
        return lengths
    arrays: Any = [lengths] if num_sources == 1 else lengths
    if num_sources == 1 and isinstance(lengths, list | tuple) and len(lengths) == 1:
        arrays = lengths if np.ndim(lengths[0]) else arrays
    if np.ndim(arrays[0] if len(arrays) else 0) == 0:
        raise ValueError(f"expected an array of lengths for each of {num_sources} sources")
    return tuple(integers_of(one, "lengths") for one in arrays)


def fields_of(
    sources: Sequence[Samples], lengths: Plain, fields: str | Sequence[str]
) -> tuple[str, ...]:
    """Return the fields to cut, which data sets must have.

    Raises:
        TypeError: A field is not a sequence, or there are data sets and no fields.
        KeyError: A data set has no such field.
    """
    chosen = (fields,) if isinstance(fields, str) else tuple(fields)
    if not chosen and isinstance(lengths, str):
        chosen = (lengths,)
    for source in sources:
        if not isinstance(source, Dataset):
            continue
        if not chosen:
            raise TypeError("expected the names of the sequences to cut: fields=[...]")
        for name in chosen:
            field = field_of(source.spec, name, source.path)
            if not field.is_sequence:
                message = f"{source.path}: field {name!r} is {field.type}, expected a sequence"
                raise TypeError(message)
    return chosen


def takes_rng(function: object) -> bool:
    """Return whether a function has a parameter `rng`.

    Raises:
        TypeError: It is not a function.
    """
    if not callable(function):
        raise TypeError(f"map expects a function, not {type(function).__name__}")
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # A builtin without a signature.
        return False
    return "rng" in parameters


def field_name_of(field: Any) -> str:
    """Return the name of a field."""
    if not isinstance(field, str):
        raise TypeError(f"field is the name of a field, not {type(field).__name__}")
    return field


def one_of(name: str, found: Any, known: Sequence[Any]) -> Any:
    """Return what is among known values."""
    if isinstance(found, bool) or found not in known:
        texts = " or ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in known)
        raise ValueError(f"{name} is {texts}, not {found!r:.80}")
    return found


def side_of(name: str, side: SupportsIndex) -> int:
    """Return a number of pixels."""
    number = operator.index(side)
    if not 1 <= number <= _SIDE_MAX:
        raise ValueError(f"{name} is from 1 to {_SIDE_MAX} pixels, got {number}")
    return number


def size_of(size: Any) -> tuple[int, int]:
    """Return height and width."""
    if hasattr(size, "__index__"):
        return side_of("size", size), side_of("size", size)
    match size:
        case (height, width):
            return side_of("size", height), side_of("size", width)
    raise TypeError(f"size is a number of pixels, or (height, width), not {size!r:.80}")


def number_of(name: str, value: Any) -> float:
    """Return a finite number."""
    if isinstance(value, bool):
        raise TypeError(f"{name} is a number, such as 0.5, not {value}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is a number, not {value!r:.80}") from None
    if not np.isfinite(number):
        raise ValueError(f"{name} is finite, got {number}")
    return number


def range_of(name: str, bounds: Any, most: float = float("inf")) -> Range:
    """Return the least and the largest value of a range of positive numbers."""
    match bounds:
        case (low, high):
            least, largest = number_of(name, low), number_of(name, high)
        case _:
            raise TypeError(f"{name} is the least and the largest value, not {bounds!r:.80}")
    if not 0 < least <= largest <= most:
        limit = "" if most == float("inf") else f" <= {most:g}"
        raise ValueError(f"{name} is (a, b) with 0 < a <= b{limit}, got ({least:g}, {largest:g})")
    return least, largest


def per_colour(name: str, values: Any, colours: int) -> tuple[float, ...] | None:
    """Return a number for each colour; None stays None."""
    if values is None:
        return None
    given = values if isinstance(values, Sequence | np.ndarray) else [values] * colours
    numbers = tuple(number_of(name, one) for one in given)
    if len(numbers) != colours:
        raise ValueError(f"{name} has a number for each of {colours} colours, got {len(numbers)}")
    return numbers
