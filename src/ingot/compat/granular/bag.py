"""`granular.bag`: files of records."""

from collections.abc import Iterator, Sequence
from typing import Any, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.compat.granular.buffer import BufferView, SharedBuffer
from ingot.compat.granular.files import open_reader, open_writer
from ingot.compat.granular.indices import rows_of
from ingot.compat.granular.paths import AnyPath
from ingot.compat.granular.utils import Closing

__all__ = ["BagReader", "BagWriter", "BufferView", "SharedBuffer"]

Indices: TypeAlias = Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]

_NEWEST = 3
_OLDEST = 1


class BagWriter(Closing):
    """Writes a bag that Granular itself can read.

    Version 3 (Granular 0.22 and later) is a pair of files that can be read up to the last
    flush and gone on with later: what a writer that died has left of a record is cut off.
    Versions 2 and 1 are one file, which appears under its name when it is closed.

    Args:
        bag_path: The file of records.
        idx_path: The file of limits of version 3; `bag_path` with the suffix `.idx`, if that
            is None. A number is taken for `version`, as Granular 0.21 has it there.
        version: 3, 2 or 1.
        filepath: `bag_path`, as Granular 0.21 calls it.

    Raises:
        FileExistsError: There is a file already, and the version is not 3.
        CorruptFileError: There is a pair whose records are fewer than its limits tell.
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
        path = bag_path if filepath is None else filepath
        if isinstance(idx_path, int):
            idx_path, version = None, idx_path
        self.version = _NEWEST if version is None else version
        if self.version not in range(_OLDEST, _NEWEST + 1):
            message = f"the version of a bag is 1, 2 or 3, not {version}"
            raise ValueError(message)
        if self.version != _NEWEST and idx_path is not None:
            message = f"version {version} has its limits in the same file"
            raise ValueError(message)
        self._writer = open_writer(path, idx_path, paired=self.version == _NEWEST)
        self._is_bare = len(self._writer) == 0
        if self.version == _OLDEST:
            self._writer.append(b"")

    @property
    def size(self) -> int:
        """Bytes of records and limits."""
        return self._writer.size

    def __len__(self) -> int:
        return len(self._writer) - (self.version == _OLDEST)

    def append(self, record: object, flush: bool = True) -> int:
        """Add a record; return its number.

        Raises:
            TypeError: It is not bytes.
            ValueError: It is the first of a bag of version 2, and empty: Granular would take
                the bag for one of version 1.
        """
        self._check_open()
        if not isinstance(record, bytes):
            message = f"a record is bytes, not {type(record).__name__}"
            raise TypeError(message)
        if not record and self._is_bare and self.version == _NEWEST - 1:
            message = (
                "the first record of a bag of version 2 cannot be empty: it would be taken for "
                "one of version 1; version=3 has no such limit"
            )
            raise ValueError(message)
        self._is_bare = False
        number = self._writer.append(record) - (self.version == _OLDEST)
        if flush:
            self.flush()
        return number

    def flush(self) -> None:
        """Bring all records so far into the files."""
        self._check_open()
        self._writer.flush()

    def _close(self) -> None:
        self._writer.close()


class BagReader(Closing):
    """Reads a bag of any version of Granular: a sequence of bytes.

    `reader[i]` is one record; a slice, a range or a list of numbers is a list of records in
    one native read. Safe from several threads and in forked processes.

    Args:
        bag_source: The file of records, or bytes, or a `SharedBuffer`.
        idx_source: The limits; the file with the suffix `.idx` if there is one, else they are
            at the end of `bag_source`. Truths are ignored: Granular 0.21 has `cache_index`
            there.
        cache_index: Accepted and ignored: limits stay in memory once they were needed.
        cache_data: Whether to read all records now, of other file systems than this one's.
        single_file: The limits are at the end, whatever other files there are.
        source: `bag_source`, as Granular 0.21 calls it.

    Raises:
        CorruptFileError: Its limits cannot be.
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
        bag_source = bag_source if source is None else source
        limits = None if isinstance(idx_source, bool) else idx_source
        self._arguments = (bag_source, limits, cache_index, cache_data, single_file)
        self._bag = open_reader(bag_source, limits, single=single_file, cached=cache_data)

    @property
    def size(self) -> int:
        """Bytes of records and limits."""
        return self._bag.nbytes

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
        return type(self)(*self._arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def _close(self) -> None:
        self._bag.close()
