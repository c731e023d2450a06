"""Indices of rows, as users pass them."""

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from ingot.records.indices import place_of


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
        return [place_of(one, length) for one in index]
    return place_of(index, length)


def rows_at(reader: Any, kind: Any, indices: Sequence[SupportsIndex]) -> list[dict[str, Any]]:
    """Return rows of a reader as dicts, in one read.

    The rows of a subclass of `kind` that has its own `__getitem__` are its own, one by one.
    """
    if type(reader).__getitem__ is not kind.__getitem__:
        return [reader[index] for index in indices]
    columns = reader[list(indices)]
    values = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]
