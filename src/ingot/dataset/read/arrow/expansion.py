"""How large the values of a Parquet file get in memory: it may have one for many rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot._core import max_decoded_bytes
from ingot.codecs.limit import check_decoded
from ingot.dataset.nested import DOT
from ingot.dataset.read.arrow.file import Path
from ingot.dataset.read.arrow.library import pyarrow

_BYTES = "BYTE_ARRAY"
_FIXED = "FIXED_LEN_BYTE_ARRAY"
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}
_INDEX = 4
_USUAL = 256
"""How many times larger than stored values may be without being looked at."""

_ROWS = 1024


class Expansion:
    """Tells what values take in memory before they are decoded.

    Writers say how large text and bytes get; older ones did not. Without that, dictionaries are
    read as such, which stay small, and the rows that share their values are counted.

    Args:
        open_file: Called with the columns to read as dictionaries; returns the file, opened by
            pyarrow.
        metadata: The metadata of the file, as pyarrow has them.
        columns: The names of each column that has values, and whether its size is told, in order.
        size: The size of the file.
    """

    def __init__(
        self,
        open_file: Callable[[list[str]], Any],
        metadata: Any,
        columns: Sequence[tuple[Path, bool]],
        size: int,
    ) -> None:
        self._open = open_file
        self._metadata = metadata
        self._columns = columns
        self._size = size
        self._longest: dict[tuple[int, int], int] = {}

    def widest(self) -> int:
        """Return the size of the largest values that all have one size."""
        schema = self._metadata.schema
        found = (schema.column(k) for k in range(len(self._columns)))
        return max((one.length for one in found if one.physical_type == _FIXED), default=0)

    def is_unknown(self, group: int, rows: int, path: Path) -> bool:
        """Return whether values of some rows must be counted before they are decoded.

        Raises:
            ValueError: They take more memory than is allowed.
        """
        unknown = [column for column in self._below(path) if self._may_exceed(group, rows, column)]
        return bool(unknown)

    def sizes(self, group: int, rows: int, path: Path) -> Iterator[int]:
        """Yield how many bytes the text at a path takes, some rows of a group at a time."""
        wanted = [DOT.join(self._columns[column][0]) for column in self._below(path)]
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
        return [k for k, (names, _) in enumerate(self._columns) if names[: len(path)] == path]

    def _may_exceed(self, group: int, rows: int, column: int) -> bool:
        about = self._metadata.schema.column(column)
        stored = self._metadata.row_group(group).column(column)
        is_list = about.max_repetition_level > 0
        is_text = stored.physical_type == _BYTES
        if is_list:
            width = _INDEX if is_text else _WIDTHS.get(stored.physical_type, about.length)
            if stored.num_values * width > _USUAL * min(stored.total_compressed_size, self._size):
                check_decoded(stored.num_values * width)
        if not is_text or self._columns[column][1]:
            return False
        count = stored.num_values if is_list else rows
        return count * self._longest_of(group, column) > max_decoded_bytes()

    def _longest_of(self, group: int, column: int) -> int:
        """Return the length of the longest value of a dictionary; 0 without one."""
        key = (group, column)
        if key not in self._longest:
            name = DOT.join(self._columns[column][0])
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
    """Return how many bytes the values take that dictionaries stand for."""
    return sum(
        int(_lengths(one)[one.indices.drop_null().to_numpy()].sum()) for one in _dictionaries(batch)
    )


def _lengths(array: Any) -> npt.NDArray[np.int64]:
    """Return how many bytes each value of a dictionary has."""
    found = pyarrow("pyarrow.compute").binary_length(array.dictionary)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)
