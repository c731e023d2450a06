"""Indices of rows, as users pass them."""

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np


def rows_of(index: Any, length: int) -> int | Sequence[int]:
    """Return the existing rows that an index selects.

    Raises:
        IndexError: A row does not exist.
        TypeError: It is not an index.
    """
    if isinstance(index, slice):
        return range(length)[index]
    if isinstance(index, range):
        if min(index, default=0) < 0:
            message = f"a range of rows must go up from 0, got {index}"
            raise IndexError(message)
        return range(length)[index.start : index.stop : index.step] if index else index
    if isinstance(index, list | tuple) or (isinstance(index, np.ndarray) and index.ndim):
        return [row_of(one, length) for one in index]
    return row_of(index, length)


def row_of(index: SupportsIndex, length: int) -> int:
    """Return the existing row at an index.

    Raises:
        IndexError: It does not exist.
    """
    number = operator.index(index)
    if not -length <= number < length:
        message = f"index {number} is out of range for {length}"
        raise IndexError(message)
    return number % length
