"""Values of rows, taken from the blocks of one or more files, and the cache of decoded blocks."""

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from itertools import accumulate, pairwise
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.limit import check_decoded
from ingot.formats.arrow.file import ColumnFile, Path, pyarrow, translated

_FILE_START = 16
_BYTES = 256 << 20
"""What all files of a process keep together."""

_NOMINAL = 1 << 10
"""What an array counts for at least: its own objects, if its values are in a mapping."""


class Cache:
    """Arrays by key, of bounded size; the one that was not used for longest goes first.

    Args:
        limit: The limit in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.reset()

    def reset(self) -> None:
        """Forget everything; in a forked child, a thread of the parent may hold the lock."""
        self._lock = Lock()
        self._arrays: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """What is kept, in bytes."""
        return self._nbytes

    def get(self, key: Hashable) -> Any:
        """Return an array, or None."""
        with self._lock:
            found = self._arrays.get(key)
            if found is None:
                return None
            self._arrays.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, array: Any, nbytes: int) -> None:
        """Keep an array that takes `nbytes` bytes, unless it is larger than the limit."""
        nbytes = max(nbytes, _NOMINAL)
        if nbytes > self._limit:
            return
        with self._lock:
            old = self._arrays.pop(key, None)
            self._nbytes += nbytes - (old[1] if old else 0)
            self._arrays[key] = (array, nbytes)
            while self._nbytes > self._limit:
                _, (_, freed) = self._arrays.popitem(last=False)
                self._nbytes -= freed

    def drop(self, token: Hashable) -> None:
        """Forget all arrays whose keys begin with `token`."""
        with self._lock:
            for key in [one for one in self._arrays if isinstance(one, tuple) and one[0] == token]:
                self._nbytes -= self._arrays.pop(key)[1]


CACHE = Cache(_BYTES)
"""The cache of this process."""

os.register_at_fork(after_in_child=CACHE.reset)


class Blocks:
    """The blocks of files, one after another.

    Args:
        files: The files.

    Attributes:
        files: The files.
    """

    def __init__(self, files: Sequence[ColumnFile]) -> None:
        self.files = files
        self._firsts = list(accumulate((len(one.counts) for one in files), initial=0))
        counts = [rows for one in files for rows in one.counts]
        self._ends = np.cumsum(counts, dtype=np.int64) if counts else np.zeros(0, np.int64)
        self._starts = self._ends - np.asarray(counts, np.int64)
        self._is_mapped = all(one.is_mapped for one in files)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def has_nulls(self, path: Path) -> bool:
        """Return whether there may be nulls among some values."""
        return any(one.has_nulls(path) for one in self.files)

    def first(self, path: Path) -> bytes | None:
        """Return how the first value that is not null begins, in the first block."""
        for number in range(min(len(self), _FILE_START)):
            (array,) = self.take(np.array([number], np.int64), [path])
            if array.null_count == 0:
                value: bytes = array[0].as_py()
                return value[:_FILE_START]
        return None

    def _file(self, block: int) -> tuple[ColumnFile, int]:
        if len(self.files) == 1:
            return self.files[0], block
        k = bisect_right(self._firsts, block) - 1
        return self.files[k], block - self._firsts[k]

    def take(self, numbers: npt.NDArray[np.int64], paths: Sequence[Path]) -> list[Any]:
        """Return the values of rows at some paths, in the order of the rows.

        Values may be views on the files: see to it before and after that those are unchanged.

        Raises:
            FormatError: A file is damaged.
        """
        pa = pyarrow()
        if not len(numbers):
            return [pa.nulls(0) for _ in paths]
        which = np.searchsorted(self._ends, numbers, "right")
        order = None
        if not self._is_mapped and (np.diff(which) < 0).any():
            order = np.argsort(which, kind="stable")
            numbers, which = numbers[order], which[order]
        rows = numbers - self._starts[which]
        wanted = tuple(paths)
        parts = []
        blocks, firsts = which.tolist(), rows.tolist()
        for start, stop in self._runs(which, rows):
            file, own = self._file(blocks[start])
            batch = file.read(own, wanted)
            if self._is_mapped:
                parts.append(batch.slice(firsts[start], stop - start))
            else:
                with translated(file.path):
                    parts.append(_taken(batch, rows[start:stop]))
        with translated(self.files[0].path):
            return _columns(parts, order)

    def split(self, numbers: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """Return rows, which are in order, by the block that they are in."""
        which = np.searchsorted(self._ends, numbers, "right")
        return np.split(numbers, np.flatnonzero(np.diff(which)) + 1)

    def check_unchanged(self, numbers: npt.NDArray[np.int64]) -> None:
        """Refuse the files of some rows, if one was changed.

        Raises:
            FormatError: One was changed, or could not be read.
        """
        if len(self.files) == 1:
            self.files[0].check_unchanged()
            return
        which = np.searchsorted(self._ends, numbers, "right")
        for k in np.unique(np.searchsorted(self._firsts, which, "right") - 1):
            self.files[k].check_unchanged()

    def _runs(
        self, which: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, int]]:
        """Yield where rows of one block begin and end; of a mapping, rows that are adjacent."""
        is_cut = np.diff(which) != 0
        if self._is_mapped:
            is_cut |= np.diff(rows) != 1
        cuts = [0, *(np.flatnonzero(is_cut) + 1).tolist(), len(rows)]
        return pairwise(cuts)


def _taken(batch: Any, rows: npt.NDArray[np.int64]) -> Any:
    """Return rows of a batch: a part of it, unless that keeps much more in memory."""
    if 2 * len(rows) >= len(batch) and bool((np.diff(rows) == 1).all()):
        return batch.slice(int(rows[0]), len(rows))
    return batch.take(pyarrow().array(rows))


def _columns(parts: Sequence[Any], order: npt.NDArray[np.int64] | None) -> list[Any]:
    """Return the columns of batches, one after another, then in the order that is wanted."""
    pa = pyarrow()
    table = pa.Table.from_batches(parts)
    found = [_joined(column) for column in table.columns]
    if order is None:
        return found
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    places = pa.array(back)
    return [one.take(places) for one in found]


def _joined(column: Any) -> Any:
    pa = pyarrow()
    if pa.types.is_dictionary(column.type):  # Each part may have a dictionary of its own.
        return pa.concat_arrays([_decoded(one) for one in column.chunks])
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _decoded(array: Any) -> Any:
    """Return the values of an array with a dictionary.

    Raises:
        FormatError: They have too many bytes: many rows may share one value.
    """
    pa = pyarrow()
    values = array.dictionary
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        compute = pyarrow("pyarrow.compute")
        lengths = compute.binary_length(values).cast(pa.int64()).take(array.indices)
        check_decoded(compute.sum(lengths).as_py() or 0)
        large = pa.large_string() if pa.types.is_string(values.type) else pa.large_binary()
        array = pa.DictionaryArray.from_arrays(array.indices, values.cast(large))
    return array.dictionary_decode()
