"""`granular.bag`: files of records."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.compat.granular.buffer import BufferView, SharedBuffer
from ingot.compat.granular.rows import rows_of
from ingot.formats import granular
from ingot.formats.granular import AnyPath, Closing

__all__ = ["BagReader", "BagWriter", "BufferView", "SharedBuffer"]

Indices: TypeAlias = Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]


class BagWriter(granular.BagWriter):
    """Writes a bag that Granular itself can read; see `ingot.formats.granular.BagWriter`.

    Args:
        bag_path: The file of records.
        idx_path: The file of limits of version 3; None for `bag_path` with the suffix `.idx`.
            A number is taken as `version`, which has this position in Granular 0.21.
        version: 3, 2 or 1.
        filepath: `bag_path`, as it is called in Granular 0.21.
    """

    def __init__(
        self,
        bag_path: AnyPath | None = None,
        idx_path: AnyPath | int | None = None,
        *,
        version: int | None = None,
        filepath: AnyPath | None = None,
    ) -> None:
        path: Any = bag_path if filepath is None else filepath
        if isinstance(idx_path, int):
            idx_path, version = None, idx_path
        super().__init__(path, idx_path, version=3 if version is None else version)

    @property
    def length(self) -> int:
        """The number of records."""
        return len(self)

    def append(self, record: object, flush: bool = True) -> int:
        """Append a record, and with `flush` write all so far to the files; return its number."""
        return super().append(record, flush=flush)


class BagReader(Closing):
    """Reads a bag of any version of Granular: a sequence of bytes.

    `reader[i]` is one record; a slice, a range or a list of numbers returns a list of records
    in one native read. Several threads and forked processes may use it at the same time.
    Pickling stores the files, and all attributes of a subclass.

    Args:
        bag_source: The file of records, or bytes, or a `SharedBuffer`.
        idx_source: The limits; by default the file with the suffix `.idx` if there is one, else
            they are at the end of `bag_source`. Booleans are ignored: Granular 0.21 has
            `cache_index` in this position.
        cache_index: Accepted and ignored: limits stay in memory once they were used.
        cache_data: Whether to read all records now, for file systems other than the local one.
        single_file: Whether the limits are at the end, whatever other files there are.
        source: `bag_source`, as it is called in Granular 0.21.

    Raises:
        CorruptFileError: Its limits are invalid.
    """

    def __init__(
        self,
        bag_source: Any = None,
        idx_source: Any = None,
        cache_index: bool = True,
        cache_data: bool = False,
        single_file: bool = False,
        *,
        source: Any = None,
    ) -> None:
        super().__init__()
        del cache_index
        bag_source = bag_source if source is None else source
        limits = None if isinstance(idx_source, bool) else idx_source
        self._source, self._limits = bag_source, limits
        self._single, self._cached = single_file, cache_data
        self._open()

    def _open(self) -> None:
        self._bag = granular.open_bag(
            self._source, self._limits, single_file=self._single, cached=self._cached
        )

    @property
    def size(self) -> int:
        """Bytes of records and limits."""
        return self._bag.nbytes

    @property
    def length(self) -> int:
        """The number of records."""
        return len(self)

    def __len__(self) -> int:
        return len(self._bag)

    @overload
    def __getitem__(self, index: SupportsIndex) -> bytes: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, index: slice | range | Indices) -> list[bytes]: ...
    def __getitem__(self, index: SupportsIndex | slice | range | Indices) -> bytes | list[bytes]:
        """Return a record, or a list of records.

        Raises:
            IndexError: There is no such record.
        """
        self._check_open()
        rows = rows_of(index, len(self))
        if isinstance(rows, int):
            return self._bag[rows]
        return self._bag[rows] if len(rows) else []

    def __iter__(self) -> Iterator[bytes]:
        return (self[row] for row in range(len(self)))

    def copy(self) -> Self:
        """Return another reader of the same bag."""
        return copy.copy(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_bag"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.closed = False
        self._open()

    def _close(self) -> None:
        self._bag.close()
