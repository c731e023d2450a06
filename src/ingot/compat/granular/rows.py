"""Rows by their numbers: indices as users pass them, and what readers of rows share."""

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self, SupportsIndex, TypeAlias

import numpy as np

from ingot.formats.granular import Closing

Row: TypeAlias = dict[str, Any]

Mask: TypeAlias = Mapping[str, bool | range | slice] | Sequence[str]
"""Keys, or what to read of each of them: a range selects elements of a sequence."""


def place_of(index: SupportsIndex, length: int) -> int:
    """Return the position for an index; a negative index counts from the end.

    Raises:
        IndexError: It is out of range.
    """
    try:
        return range(length)[index]
    except IndexError:
        message = f"index {index} is out of range for {length}"
        raise IndexError(message) from None


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


class RowReader(Closing):
    """Rows, and several of them at once."""

    @abstractmethod
    def __len__(self) -> int: ...
    @abstractmethod
    def read(self, rows: int | Sequence[int], mask: Mask | None) -> Row:
        """Read some keys of existing rows; all keys if there is no mask."""

    @property
    def length(self) -> int:
        """The number of rows."""
        return len(self)

    def __getitem__(self, index: Any) -> Row:
        """Return a row, or a dict with the values of several rows for each key.

        Raises:
            IndexError: There is no such row.
            KeyError: There is no such key.
        """
        self._check_open()
        which, mask = index if isinstance(index, tuple) else (index, None)
        return self.read(rows_of(which, len(self)), mask)

    def copy(self) -> Self:
        """Return another reader of the same rows."""
        return copy.copy(self)

    def __getitems__(self, indices: Sequence[SupportsIndex]) -> list[Row]:
        """Return rows, in one native read per key and folder.

        The rows of a subclass that has its own `__getitem__` are its own, one by one.
        """
        if type(self).__getitem__ is not RowReader.__getitem__:
            return [self[index] for index in indices]
        columns = self[list(indices)]
        values = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in values]
