"""Granular's bags, of any version: pairs of files, or single files.

Paths are local ones, which the engine reads and writes, or objects with the interface of a path.
"""

import os
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self
from weakref import WeakValueDictionary

from ingot.errors import ClosedError
from ingot.formats import bag as native
from ingot.formats.granular.columns import Bag
from ingot.formats.granular.handles import LIMIT_BYTES, HandleBag, HandleWriter
from ingot.formats.granular.layout import AnyPath, PathLike, is_local, local
from ingot.records.expand import absolute

NEWEST = 3
_OLDEST = 1


class Closing(ABC):
    """Something that can be closed; `closed` says whether it is."""

    def __init__(self) -> None:
        self.closed = False

    @abstractmethod
    def _close(self) -> None:
        """Release resources. Called once."""

    def close(self) -> None:
        """Close it. A second call does nothing."""
        if not self.closed:
            self.closed = True
            self._close()

    def _check_open(self) -> None:
        if self.closed:
            message = f"this {type(self).__name__} is closed"
            raise ClosedError(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"closing also failed: {failure}")


class BagWriter(Closing):
    """Writes a bag that Granular itself can read.

    Version 3 (Granular 0.22 and later) is a pair of files. They can be read up to the last
    flush and appended to later: an incomplete record of a writer that died is cut off, and
    another writer of this process that has the bag open is closed. Versions 2 and 1 are one
    file, which appears under its name when it is closed.

    Args:
        path: The file of records.
        limits: The file of limits of version 3; None for `path` with the suffix `.idx`.
        version: 3, 2 or 1.

    Raises:
        FileExistsError: There is a file, and the version is not 3.
        CorruptFileError: There is a pair with fewer records than limits.
    """

    def __init__(
        self, path: AnyPath, limits: AnyPath | None = None, *, version: int = NEWEST
    ) -> None:
        super().__init__()
        if version not in range(_OLDEST, NEWEST + 1):
            message = f"the version of a bag must be 1, 2 or 3, got {version}"
            raise ValueError(message)
        if version != NEWEST and limits is not None:
            message = f"version {version} has its limits in the same file"
            raise ValueError(message)
        self.version = version
        place, is_pair = local(path), version == NEWEST
        if is_pair:
            take(place, self)
            limits = place.with_suffix(".idx") if limits is None else limits
        self._writer: native.BagWriter | HandleWriter
        if isinstance(place, Path) and (limits is None or is_local(limits)):
            mode: Literal["append", "create"] = "append" if is_pair else "create"
            self._writer = native.BagWriter(place, limits, mode=mode)
        else:
            self._writer = HandleWriter(place, limits)
        self._is_bare = len(self._writer) == 0
        self._flushed_bytes = self._writer.size - LIMIT_BYTES * len(self._writer)
        if version == _OLDEST:
            self._writer.append(b"")

    @property
    def size(self) -> int:
        """Bytes of records and limits; for version 3, without records that are not flushed."""
        if self.version == NEWEST:
            return self._flushed_bytes + LIMIT_BYTES * len(self)
        return self._writer.size

    def __len__(self) -> int:
        return len(self._writer) - (self.version == _OLDEST)

    def append(self, record: object, *, flush: bool = False) -> int:
        """Append a record, and with `flush` write all so far to the files; return its number.

        Raises:
            TypeError: It is not bytes.
            ValueError: It is empty and the first record of a bag of version 2: Granular would take
                the bag for one of version 1.
        """
        self._check_open()
        if not isinstance(record, bytes):
            message = f"a record must be bytes, got {type(record).__name__}"
            raise TypeError(message)
        if not record and self._is_bare and self.version == NEWEST - 1:
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


def open_bag(
    source: Any, limits: Any = None, *, single_file: bool = False, cached: bool = False
) -> Bag:
    """Open a bag of any version for reading.

    Args:
        source: Its records: a path, bytes, or an object with `open`.
        limits: Its limits; None to look for them beside or after the records.
        single_file: Whether the limits follow the records, whatever is beside them.
        cached: Whether to read everything now, if the engine does not read it.

    Raises:
        CorruptFileError: Its limits are invalid.
    """
    source, limits = (absolute(one) if is_local(one) else one for one in (source, limits))
    if limits is None and not single_file and hasattr(source, "with_suffix"):
        beside = source.with_suffix(".idx")
        limits = beside if beside.exists() else None
    if not isinstance(source, Path) or not isinstance(limits, Path | None):
        return HandleBag(source, limits, cached=cached)
    file = native.BagFile(str(source), None if limits is None else str(limits), "none")
    bag = native.BagReader([file])
    # Up to Granular 0.19, the limits begin with a zero. Those of no other bag do: it would be
    # the limit of an empty record, which Granular does not write there.
    if limits is None and len(bag) and bag.lengths([0])[0] == 0:
        bag.close()
        return native.BagReader([replace(file, leading_zero=True)])
    return bag


_owners: WeakValueDictionary[tuple[int, str], Closing] = WeakValueDictionary()


def take(path: Path | PathLike, owner: Closing) -> None:
    """Give a path to a writer, before it opens its files.

    If another writer of this process has the path, it is closed, with everything appended to
    it: a notebook cell that runs again continues where its first run ended. Writers of other
    processes are not affected; their files are locked.
    """
    key = (os.getpid(), str(path))
    former = _owners.get(key)
    if former is not None:
        former.close()
    _owners[key] = owner
