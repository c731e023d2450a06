"""`granular.bag`: files of records."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.compat.granular.buffer import BufferView, SharedBuffer
from ingot.compat.granular.files import open_reader, open_writer
from ingot.compat.granular.handles import LIMIT_BYTES
from ingot.compat.granular.indices import rows_of
from ingot.compat.granular.owners import take
from ingot.compat.granular.paths import AnyPath, local
from ingot.compat.granular.utils import Closing

__all__ = ["BagReader", "BagWriter", "BufferView", "SharedBuffer"]

Indices: TypeAlias = Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]

_NEWEST = 3
_OLDEST = 1


class BagWriter(Closing):
    """Writes a bag that Granular itself can read.

    Version 3 (Granular 0.22 and later) is a pair of files. They can be read up to the last
    flush and appended to later: an incomplete record of a writer that died is cut off, and
    another writer of this process that has the bag open is closed. Versions 2 and 1 are one
    file, which appears under its name when it is closed.

    Args:
        bag_path: The file of records.
        idx_path: The file of limits of version 3; None for `bag_path` with the suffix `.idx`.
            A number is taken as `version`, which has this position in Granular 0.21.
        version: 3, 2 or 1.
        filepath: `bag_path`, as it is called in Granular 0.21.

    Raises:
        FileExistsError: There is a file, and the version is not 3.
        CorruptFileError: There is a pair with fewer records than limits.
    """

    def __init__(
        self,
        bag_path: AnyPath | None = None,
        idx_path: AnyPath | int | None = None,
        *,
        version: int | None = None,
        filepath: AnyPath | None = None,
    ) -> None:
        super().__init__()
        path: Any = bag_path if filepath is None else filepath
        if isinstance(idx_path, int):
            idx_path, version = None, idx_path
        self.version = _NEWEST if version is None else version
        if self.version not in range(_OLDEST, _NEWEST + 1):
            message = f"the version of a bag must be 1, 2 or 3, got {version}"
            raise ValueError(message)
        if self.version != _NEWEST and idx_path is not None:
            message = f"version {version} has its limits in the same file"
            raise ValueError(message)
        if self.version == _NEWEST:
            take(local(path), self)
        self._writer = open_writer(path, idx_path, paired=self.version == _NEWEST)
        self._is_bare = len(self._writer) == 0
        self._flushed_bytes = self._writer.size - LIMIT_BYTES * len(self._writer)
        if self.version == _OLDEST:
            self._writer.append(b"")

    @property
    def size(self) -> int:
        """Bytes of records and limits; for version 3, without records that are not flushed."""
        if self.version == _NEWEST:
            return self._flushed_bytes + LIMIT_BYTES * len(self)
        return self._writer.size

    @property
    def length(self) -> int:
        """The number of records."""
        return len(self)

    def __len__(self) -> int:
        return len(self._writer) - (self.version == _OLDEST)

    def append(self, record: object, flush: bool = True) -> int:
        """Append a record; return its number.

        Raises:
            TypeError: It is not bytes.
            ValueError: It is empty and the first record of a bag of version 2: Granular would take
                the bag for one of version 1.
        """
        self._check_open()
        if not isinstance(record, bytes):
            message = f"a record must be bytes, got {type(record).__name__}"
            raise TypeError(message)
        if not record and self._is_bare and self.version == _NEWEST - 1:
            message = (
                "the first record of a bag of version 2 must not be empty: it would be taken for "
                "one of version 1; pass version=3, which allows it"
            )
            raise ValueError(message)
        self._is_bare = False
        number = self._writer.append(record) - (self.version == _OLDEST)
        if flush:
            self.flush()
        return number

    def flush(self) -> None:
        """Write all records so far to the files."""
        self._check_open()
        self._flush()

    def _flush(self) -> None:
        self._writer.flush()
        self._flushed_bytes = self._writer.size - LIMIT_BYTES * len(self._writer)

    def _close(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Give up the bag. Version 3 keeps what was flushed, other versions nothing."""
        self.closed = True
        self._writer.abandon()


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
        self._bag = open_reader(
            self._source, self._limits, single=self._single, cached=self._cached
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
