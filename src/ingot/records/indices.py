"""Which rows users ask for: by indices, by a condition, or as the parts of a split."""

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
_ROUNDING = 1e-9


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
        raise TypeError("a boolean mask is not an index array: where(mask) selects its rows")
    if array.shape == (0,):
        return np.empty(0, np.int64)
    if array.ndim == 0 or (array.ndim > 1 and array is not indices):
        raise TypeError(_no_indices(indices))
    if array.ndim > 1:
        raise ValueError(f"an index array must have one dimension, got {array.ndim}")
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
        raise IndexError(f"{path}: index {wrong} is out of range for {counted(len(rows), 'row')}")
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
        raise ValueError("expected one boolean per row, got indices: take(indices) has their rows")
    if chosen.dtype != np.bool_ or chosen.shape != (length,):
        raise ValueError(
            f"expected a condition with one boolean for each of {length} rows, "
            f"got {chosen.dtype} of shape {chosen.shape}"
        )
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
