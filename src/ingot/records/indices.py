"""Indices, as users pass them, and the numbers of the rows that they stand for."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.errors import counted

Indices: TypeAlias = Iterable[SupportsIndex] | npt.NDArray[np.integer[Any]]
Numbers: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = range | npt.NDArray[np.int64]

_BLOCK = 1024
_INTEGERS = (int, np.integer)


def is_one(index: Any) -> bool:  # noqa: ANN401 -- users pass anything
    """Whether this is one index, not a sequence of them."""
    return isinstance(index, _INTEGERS) or (
        hasattr(index, "__index__") and getattr(index, "ndim", 0) == 0
    )


def integers(indices: Indices) -> npt.NDArray[np.integer[Any]]:
    """Return several indices as an array of one dimension.

    Raises:
        TypeError: They are not integers.
        ValueError: They have several dimensions.
    """
    if type(indices) is np.ndarray and indices.dtype.kind in "iu" and indices.ndim == 1:
        return indices
    if isinstance(indices, str | bytes | bytearray | set | frozenset | Mapping):
        raise TypeError(_no_indices(indices))
    if not isinstance(indices, Sequence) and not hasattr(indices, "__array__"):
        if not isinstance(indices, Iterable):
            raise TypeError(_no_indices(indices))
        indices = list(indices)
    array = np.asarray(indices)
    if array.dtype == np.bool_:
        message = "a boolean mask is not an index array: where(mask) selects its rows"
        raise TypeError(message)
    if array.shape == (0,):
        return np.empty(0, np.int64)
    if array.ndim == 0 or (array.ndim > 1 and array is not indices):
        raise TypeError(_no_indices(indices))
    if array.ndim > 1:
        message = f"an index array must have one dimension, got {array.ndim}"
        raise ValueError(message)
    return array if array.dtype.kind in "iu" else _converted(indices)


def _converted(indices: Indices) -> npt.NDArray[np.integer[Any]]:
    """Return objects as an array, of Python's integers if they may be of any size."""
    try:
        return np.array([operator.index(index) for index in indices], object)
    except TypeError:
        raise TypeError(_no_indices(indices)) from None


def _no_indices(found: object) -> str:
    return (
        "indices are integers, slices, or sequences or arrays of integers, "
        f"not {type(found).__name__}"
    )


def outside(array: npt.NDArray[np.integer[Any]], least: int, stop: int) -> int | None:
    """Return the first index that is less than `least`, or not less than `stop`, if any."""
    bad = (array < least) | (array >= stop)
    return int(array[bad.argmax()]) if bad.any() else None


def wrapped(array: npt.NDArray[np.integer[Any]], length: int) -> Numbers:
    """Return indices that are in range as positions: negative ones count from the end."""
    places = array.astype(np.int64, copy=False)
    return np.where(places < 0, places + length, places)


def place_of(index: SupportsIndex, length: int) -> int:
    """Return the position for an index; a negative index counts from the end.

    Raises:
        IndexError: It is out of range.
    """
    number = operator.index(index)
    if not -length <= number < length:
        message = f"index {number} is out of range for {length}"
        raise IndexError(message)
    return number + length if number < 0 else number


def numbers_at(rows: Rows, places: Rows) -> Numbers:
    """Return the numbers of the rows at positions that are in range."""
    if not isinstance(rows, range):
        return rows[np.asarray(places, np.int64)]
    if rows.start == 0 and rows.step == 1:
        return np.asarray(places, np.int64)
    return rows.start + np.asarray(places, np.int64) * rows.step


def number_at(rows: Rows, index: SupportsIndex, path: str) -> int:
    """Return the number of the row at an index; a negative index counts from the end.

    Raises:
        IndexError: It is out of range; the message names `path`.
    """
    try:
        return int(rows[operator.index(index)])
    except (IndexError, OverflowError):
        message = f"{path}: index {index} is out of range for {counted(len(rows), 'row')}"
        raise IndexError(message) from None


def resolve(rows: Rows, indices: Indices, path: str) -> Numbers:
    """Return the numbers of the rows at several indices.

    Raises:
        IndexError: One is out of range; the message names `path`.
        TypeError: They are not integers.
        ValueError: They have several dimensions.
    """
    array = integers(indices)
    if array.dtype == np.int64 and array.view(np.uint64).max(initial=0) < len(rows):
        return numbers_at(rows, np.asarray(array, np.int64))
    wrong = outside(array, -len(rows), len(rows))
    if wrong is not None:
        message = f"{path}: index {wrong} is out of range for {counted(len(rows), 'row')}"
        raise IndexError(message)
    return numbers_at(rows, wrapped(array, len(rows)))


def taken(rows: Rows, indices: Indices | SupportsIndex, path: str) -> Rows:
    """Return the rows at several indices, as a table of its own; of one number, that many.

    Raises:
        IndexError: One is out of range; the message names `path`.
        TypeError: They are not integers.
        ValueError: The number is negative.
    """
    if is_one(indices):
        count = operator.index(indices)  # type: ignore[arg-type]
        if count < 0:
            message = f"take expects at least 0 rows, got {count}; [{count}:] is the last {-count}"
            raise ValueError(message)
        return rows[:count]
    found = resolve(rows, indices, path)  # type: ignore[arg-type]
    return found.copy() if np.may_share_memory(found, indices) else found


def concatenated(tables: Sequence[Rows]) -> Rows:
    """Return the rows of several tables, one after another; as a range, if they are one."""
    filled = [rows for rows in tables if len(rows)]
    ranges = [rows for rows in filled if isinstance(rows, range)]
    if not filled:
        return range(0)
    if len(filled) == 1:
        return filled[0]
    is_one_range = len(ranges) == len(filled) and all(
        one.step == two.step == 1 and one.stop == two.start for one, two in pairwise(ranges)
    )
    if is_one_range:
        return range(ranges[0].start, ranges[-1].stop)
    return np.concatenate([np.asarray(rows, np.int64) for rows in filled])


def each(rows: Rows) -> Iterator[int]:
    """Iterate over the numbers of rows."""
    if isinstance(rows, range):
        return iter(rows)
    starts = range(0, len(rows), _BLOCK)
    return chain.from_iterable(rows[start : start + _BLOCK].tolist() for start in starts)
