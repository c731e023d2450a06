"""Parquet files."""

import os
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path as FilePath
from threading import Lock, RLock
from typing import Any

from ingot._core import parquet_footer
from ingot.dataset.nested import DOT
from ingot.errors import CorruptFileError, FormatError
from ingot.formats.arrow.blocks import CACHE
from ingot.formats.arrow.expansion import Column, Expansion
from ingot.formats.arrow.file import (
    ColumnFile,
    Path,
    batch_of,
    pyarrow,
    translated,
    values_at,
)
from ingot.formats.arrow.schema import Kind

PARQUET = b"PAR1"
_ROWS = 16 << 10
_BYTES = 32 << 20
"""The largest block: a larger row group is decoded in parts, from its beginning."""

_BLOCKS = 1 << 22
_TAIL = 8
_ENCRYPTED = b"PARE"
_OPEN_MAX = 32


class ParquetFile(ColumnFile):
    """A Parquet file; a block is a row group, or a part of a large one.

    Blocks are decoded whole, verified if the file has checksums, and kept in the cache.

    Args:
        path: The file.

    Raises:
        FormatError: It is not a Parquet file, or damaged.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._owner = (0, RLock())
        self._file: Any = None
        self._metadata: Any = None
        self._cursors: dict[Path, _Cursor] = {}
        footer, offset = _footer(path)
        groups, columns = parquet_footer(footer, path, offset)
        self._columns = [(tuple(names), nulls) for names, nulls, *_ in columns]
        self._rows = [rows for rows, _ in groups]
        with translated(path):
            opened = self._open()
            self.schema = opened.schema_arrow
            self._metadata = opened.metadata
            opened.close()
        if self._metadata.num_row_groups != len(groups):
            message = f"{path}: Ingot and pyarrow disagree on the number of row groups"
            raise FormatError(message, path)
        known = [
            Column(tuple(names), is_told, values, crowd)
            for names, _, is_told, values, crowd in columns
        ]
        self._expansion = Expansion(
            self._open,
            self._metadata.schema,
            known,
            largest=[largest for _, largest in groups],
            size=self.identity[0],
        )
        widest = self._expansion.widest()
        self._heights: list[int] = []
        self._groups: list[tuple[int, int, int]] = []
        for group, (rows, largest) in enumerate(groups):
            height = max(1, min(_ROWS, _BYTES * rows // max(1, largest, rows * widest), rows))
            parts = range(0, rows, height)
            self._heights.append(height)
            if len(self._groups) + len(parts) > _BLOCKS:
                message = f"{path}: row group {group} has {rows} rows of {largest} bytes: too many"
                raise FormatError(message, path)
            self._groups += [(group, start, min(height, rows - start)) for start in parts]
        self.counts = [rows for _, _, rows in self._groups]

    def _open(self, dictionaries: Sequence[str] = ()) -> Any:
        return pyarrow("pyarrow.parquet").ParquetFile(
            self.path,
            metadata=self._metadata,
            page_checksum_verification=True,
            read_dictionary=list(dictionaries),
        )

    def has_nulls(self, path: Path) -> bool:
        """Return whether statistics show no proof that there are none.

        They count an empty list as a null. Of numbers that are members of structs in lists,
        pyarrow counts neither that nor a list that is null.
        """
        found = [nulls for names, nulls in self._columns if names[: len(path)] == path]
        kind = Kind.of(self.schema).at(path)
        return not found or any(found) or kind is None or _has_structs_in_lists(kind)

    def _lock(self) -> RLock:
        """Return the lock of this process; the parent's may be held by a thread of it."""
        if self._owner[0] != os.getpid():
            self._file, self._cursors = None, {}
            self._owner = (os.getpid(), RLock())
        return self._owner[1]

    def read(self, block: int, paths: tuple[Path, ...]) -> Any:
        """Return values of a block, decoded or from the cache."""
        found = {path: CACHE.get((self.token, block, path)) for path in paths}
        missing = [path for path, array in found.items() if array is None]
        if missing:
            with self._lock(), translated(self.path):
                if self._file is None:
                    self._file = self._open()
                _HANDLES.note(self)
                group, start, rows = self._groups[block]
                whole = [] if rows < self._rows[group] else self._known(group, rows, missing)
                found |= self._whole(block, whole) if whole else {}
                rest = [path for path in missing if path not in whole]
                found |= {path: self._part(block, start, path) for path in rest}
        return batch_of([found[path] for path in paths])

    def _known(self, group: int, rows: int, paths: Sequence[Path]) -> list[Path]:
        """Return the paths of those values that need not be counted."""
        return [path for path in paths if not self._expansion.is_unknown(group, rows, path)]

    def _whole(self, block: int, paths: Sequence[Path]) -> dict[Path, Any]:
        group, _, rows = self._groups[block]
        names = [DOT.join(path) for path in paths]
        table = self._file.read_row_group(group, columns=names)
        if table.num_rows != rows:
            message = f"{self.path}: row group {group} has {table.num_rows} rows, expected {rows}"
            raise FormatError(message, self.path)
        return {path: self._kept(block, path, _joined(table, path)) for path in paths}

    def _part(self, block: int, start: int, path: Path) -> Any:
        """Decode a row group up to a part of it; the parts before it are kept as well."""
        group = self._groups[block][0]
        height = self._heights[group]  # The last part may have fewer rows.
        cursor = self._cursors.pop(path, None)  # One that fails is not used again.
        if cursor is None or cursor.group != group or cursor.start > start:
            cursor = _Cursor(self._file, group, path, height)
            if self._expansion.is_unknown(group, height, path):
                cursor.checks = map(
                    self._expansion.check, self._expansion.sizes(group, height, path)
                )
        while True:
            first = block - (start - cursor.start) // height
            array = self._kept(first, path, cursor.take())
            if first == block:
                self._cursors[path] = cursor
                return array

    def _kept(self, block: int, path: Path, array: Any) -> Any:
        if len(array) != self.counts[block]:
            message = f"{self.path}: a row group has fewer rows than its metadata tell"
            raise FormatError(message, self.path)
        nbytes = array.get_total_buffer_size()
        self._expansion.check(nbytes)
        CACHE.put((self.token, block, path), array, nbytes)
        return array

    def release(self) -> bool:
        """Close the file until it is needed again; return False if somebody is reading it."""
        lock = self._lock()
        if not lock.acquire(blocking=False):
            return False
        try:
            file, self._file, self._cursors = self._file, None, {}
            if file is not None:
                file.close()
        finally:
            lock.release()
        return True

    def close(self) -> None:
        """Close the file until it is needed again, and forget what was read."""
        with self._lock():
            self.release()
        CACHE.drop(self.token)


class _Handles:
    """The files that are open: few, however many are read."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything; in a forked child, a thread of the parent may hold the lock."""
        self._changing = Lock()
        self._files: OrderedDict[int, weakref.ref[ParquetFile]] = OrderedDict()

    def note(self, file: ParquetFile) -> None:
        """Say that a file is in use; those that were not for the longest time are closed."""
        with self._changing:
            self._files[file.token] = weakref.ref(file)
            self._files.move_to_end(file.token)
            oldest = list(self._files.items())[: max(0, len(self._files) - _OPEN_MAX)]
        for token, kept in oldest:
            other = kept()
            if other is None or (other is not file and other.release()):
                with self._changing:
                    self._files.pop(token, None)


_HANDLES = _Handles()
os.register_at_fork(after_in_child=_HANDLES.reset)


class _Cursor:
    """Goes through the values at a path in a row group, some rows at a time.

    Attributes:
        group: The row group.
        start: The row of the group at which it stands.
        checks: What to wait for before the next rows are decoded; it fails if they are too large.
    """

    checks: Iterator[None] = repeat(None)

    def __init__(self, file: Any, group: int, path: Path, rows: int) -> None:
        self.group = group
        self.start = 0
        self._path = path
        self._rows = rows
        self._batches: Iterator[Any] = file.iter_batches(
            rows, row_groups=[group], columns=[DOT.join(path)], use_threads=False
        )
        self._left: list[Any] = []

    def take(self) -> Any:
        """Return the values of the next rows: fewer at the end of the group.

        Raises:
            ValueError: They take more memory than is allowed.
        """
        next(self.checks, None)
        pa = pyarrow()
        while sum(map(len, self._left)) < self._rows:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._left.append(_joined(pa.Table.from_batches([batch]), self._path))
        joined = pa.concat_arrays(self._left) if self._left else pa.nulls(0)
        found, rest = joined[: self._rows], joined[self._rows :]
        self._left = [rest] if len(rest) else []
        self.start += len(found)
        return found


def _has_structs_in_lists(kind: Kind, *, inside: bool = False) -> bool:
    """Whether values are, or contain, lists of structs."""
    is_list = kind.is_list or kind.format == "+m"
    if kind.format == "+s":
        return inside or any(map(_has_structs_in_lists, kind.children))
    return is_list and any(_has_structs_in_lists(one, inside=True) for one in kind.children)


def _joined(table: Any, path: Path) -> Any:
    """Return the values at a path of a table as one array."""
    chunks = [values_at(one, path[1:]) for one in table.column(path[0]).chunks]
    pa = pyarrow()
    if not chunks:
        empty = pa.array([], table.schema.field(path[0]).type)
        return values_at(empty, path[1:])
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _footer(path: str) -> tuple[bytes, int]:
    """Return the footer of a file, and where it begins.

    Raises:
        CorruptFileError: The file does not end with one.
    """
    with FilePath(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        tail = file.read(_TAIL)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] == _ENCRYPTED:
            message = f"{path}: the file is encrypted; write it again without encryption"
            raise FormatError(message, path)
        if tail[4:] != PARQUET or length + _TAIL + len(PARQUET) > size:
            message = f"{path}: no Parquet footer at the end: truncated, or not a Parquet file"
            raise CorruptFileError(message, path, offset=max(0, size - _TAIL))
        start = size - _TAIL - length
        file.seek(start)
        return file.read(length), start
