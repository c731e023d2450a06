"""How large the values of a Parquet file get in memory: it may have one for many rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ingot._core import max_decoded_bytes
from ingot.codecs.limit import check_decoded
from ingot.dataset.nested import DOT
from ingot.formats.arrow.file import Path, pyarrow

_BYTES = "BYTE_ARRAY"
_FIXED = "FIXED_LEN_BYTE_ARRAY"
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}
_INDEX = 4
_USUAL = 256
"""How many times larger than their file values may be without being looked at."""

_ROWS = 1024


class Column(NamedTuple):
    """What the footer says about a column that has values.

    Attributes:
        path: The names that lead to it.
        is_told: Whether it says how large its text is.
        values: The largest number of values that a row group has, lists included.
        crowd: The same of the row groups that have 256 or more of them in a byte.
    """

    path: Path
    is_told: bool
    values: int
    crowd: int


class Expansion:
    """Tells what values take in memory before they are decoded.

    Writers say how large text and bytes get; older ones did not. Without that, dictionaries are
    read as such, which stay small, and the rows that share their values are counted.

    Args:
        open_file: Called with the columns to read as dictionaries; returns the file, opened by
            pyarrow.
        schema: The schema of the file, as Parquet has it. pyarrow is not asked
            about row groups: damage to what it knows of them ends the process.
        columns: The columns that have values, in order.
        largest: The size of the largest column of each row group: no value is larger.
        size: The size of the file.
    """

    def __init__(
        self,
        open_file: Callable[[list[str]], Any],
        schema: Any,
        columns: Sequence[Column],
        *,
        largest: Sequence[int],
        size: int,
    ) -> None:
        self._open = open_file
        self._schema = schema
        self._columns = columns
        self._largest = largest
        self._size = size
        self._longest: dict[tuple[int, int], int] = {}

    def widest(self) -> int:
        """Return the size of the largest values that all have one size."""
        found = (self._schema.column(k) for k in range(len(self._columns)))
        return max((one.length for one in found if one.physical_type == _FIXED), default=0)

    def is_unknown(self, group: int, rows: int, path: Path) -> bool:
        """Return whether values of some rows must be counted before they are decoded.

        Raises:
            ValueError: They take more memory than is allowed.
        """
        unknown = [column for column in self._below(path) if self._may_exceed(group, rows, column)]
        return bool(unknown)

    def check(self, nbytes: int) -> None:
        """Refuse values that take more memory than is allowed, and much more than the file.

        Raises:
            ValueError: They do.
        """
        if nbytes > _USUAL * self._size:
            check_decoded(nbytes)

    def sizes(self, group: int, rows: int, path: Path) -> Iterator[int]:
        """Yield how many bytes the text at a path takes, some rows of a group at a time."""
        wanted = [DOT.join(self._columns[column].path) for column in self._below(path)]
        found, left = 0, rows
        with self._open(wanted) as file:
            for batch in file.iter_batches(rows, row_groups=[group], columns=[DOT.join(path)]):
                found += _nbytes(batch.slice(0, left))
                left -= len(batch)
                if left <= 0:
                    yield found
                    found, left = _nbytes(batch.slice(len(batch) + left)), left + rows
        yield found

    def _below(self, path: Path) -> list[int]:
        return [k for k, one in enumerate(self._columns) if one.path[: len(path)] == path]

    def _may_exceed(self, group: int, rows: int, column: int) -> bool:
        about, known = self._schema.column(column), self._columns[column]
        is_list = about.max_repetition_level > 0
        is_text = about.physical_type == _BYTES
        if is_list:
            width = _INDEX if is_text else _WIDTHS.get(about.physical_type, about.length)
            self.check(known.crowd * width)
        if not is_text or known.is_told:
            return False
        most = max(max_decoded_bytes(), _USUAL * self._size)
        count = known.values if is_list else rows
        if count * self._largest[group] <= most:
            return False
        return count * self._longest_of(group, column) > most

    def _longest_of(self, group: int, column: int) -> int:
        """Return the length of the longest value of a dictionary; 0 without one."""
        key = (group, column)
        if key not in self._longest:
            name = DOT.join(self._columns[column].path)
            with self._open([name]) as file:
                batches = file.iter_batches(_ROWS, row_groups=[group], columns=[name])
                found = (one for batch in batches for one in _dictionaries(batch))
                first = next((one for one in found if len(one.dictionary)), None)
            self._longest[key] = 0 if first is None else int(_lengths(first).max())
        return self._longest[key]


def _dictionaries(batch: Any) -> Iterator[Any]:
    """Yield the arrays in a batch that have a dictionary."""
    pa = pyarrow()
    arrays = list(batch.columns)
    while arrays:
        one = arrays.pop()
        if isinstance(one, pa.ExtensionArray):
            arrays.append(one.storage)
        elif isinstance(one, pa.DictionaryArray):
            yield one
        elif pa.types.is_struct(one.type):
            arrays += one.flatten()
        elif isinstance(one, pa.MapArray):
            arrays += [one.keys, one.items]
        elif hasattr(one, "flatten"):
            arrays.append(one.flatten())


def _nbytes(batch: Any) -> int:
    """Return how many bytes the values of arrays with dictionaries take."""
    return sum(
        int(_lengths(one)[one.indices.drop_null().to_numpy()].sum()) for one in _dictionaries(batch)
    )


def _lengths(array: Any) -> npt.NDArray[np.int64]:
    """Return how many bytes each value of a dictionary has."""
    found = pyarrow("pyarrow.compute").binary_length(array.dictionary)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)
