"""Rows that are in an HDF5 file."""

import errno
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import Hdf5Column, Hdf5File, contents, identity
from ingot.dataset.read.compound import chained
from ingot.dataset.read.plan import OwnPlan, Plan
from ingot.dataset.read.source import Numbers, Picks, Progress, Row, Source, Stored, identity_of
from ingot.dataset.read.values import picked, stacked, undecodable
from ingot.dataset.spec import Spec
from ingot.dataset.write.columns import encoded
from ingot.errors import ClosedError, FormatError, StorageError
from ingot.formats.base.options import Options
from ingot.formats.hdf5 import chunks
from ingot.formats.hdf5.column import Column
from ingot.formats.hdf5.file import Handle, Location, locate, metadata_of
from ingot.formats.hdf5.table import Table
from ingot.locks import cached_property
from ingot.records import Damage, Verification
from ingot.records.indices import Rows

Stamp: TypeAlias = tuple[int, str]
"""The size of a file and when it was changed."""

_BLOCK_ROWS = 256
_BLOCK_BYTES = 64 << 20
"""How much is read ahead in a scan: at least a row of chunks."""


def open_files(paths: Sequence[str], name: str, options: Options) -> Source:
    """Open files, or locations in files such as `train.h5/images`.

    Raises:
        FormatError: One of them is not an HDF5 file.
    """
    sources = []
    for path in paths:
        location = locate(path)
        if location is None and not Path(path).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if location is None:
            message = f"{path}: not an HDF5 file, but {paths[0]} is; open them separately"
            raise FormatError(message, path)
        partial, external = options.partial, options.allow_external
        sources.append(Hdf5Rows(location, partial=partial, allow_external=external))
    return chained(sources, name)


class _Reading(NamedTuple):
    """How columns are read: by the engine, from where it knows them to be, or by h5py."""

    by_engine: list[Column]
    located: list[Hdf5Column]
    by_h5py: list[Column]


_Found: TypeAlias = tuple[Column, Callable[[Any], Row], Any]
"""A column, what decodes its values, and what was read."""


class Hdf5Rows(Source):
    """Rows of data sets that share their first dimension.

    The engine reads contiguous data sets and chunks without a filter, h5py the rest.

    Args:
        location: The file, or a place in it.
        partial: Whether a file that its writer has not finished is read, too.
        allow_external: Whether virtual data sets may have values of other files.

    Raises:
        FormatError: There are no such rows, or the file is damaged.
    """

    spec: Spec
    path: str
    paths: Sequence[str]
    others: Sequence[str]
    format = "hdf5"
    closed = False
    is_recoded = True
    damages = (FormatError, StorageError)

    def __init__(
        self, location: Location, *, partial: bool = False, allow_external: bool = False
    ) -> None:
        self._location = location
        self._allow_external = allow_external
        self._handle = Handle(location.file, partial=partial)
        self.path = str(location)
        self.paths = [location.file]
        self._opened = identity(location.file)
        with self._handle.use() as file:
            table = Table.of(file, location, partial=partial, allow_external=allow_external)
        self.others = table.others
        self._rows = table.rows
        self._columns = {name: one for one in table.columns for name in one.fields}
        self.spec = Spec({name: one.fields[name] for name, one in self._columns.items()})
        self._native = Hdf5File(location.file)
        self._located: dict[str, Hdf5Column | None] = {}
        self._latest: tuple[tuple[str, ...], _Reading] = ((), _Reading([], [], []))
        self._handle.release()

    def again(self) -> tuple[Callable[..., Source], tuple[Any, ...]]:
        """Return what opens the same file in another process."""
        options = {"partial": self._handle.partial, "allow_external": self._allow_external}
        return _reopened, (self._location, self._opened[:2], options)

    def raw(self, names: Collection[str] | None = None) -> Self:
        """Refuse: the file stores no values as bytes of their own."""
        del names
        message = (
            f"{self.path}: stored() requires rows that are stored as bytes, and HDF5's are not"
        )
        raise TypeError(message)

    @contextmanager
    def _h5py(self, row: int | None = None) -> Iterator[Any]:
        """Yield the file as h5py has it; it must be as it was when this was opened.

        It stays open, and locked for writers, only if there are columns that the engine
        cannot read.
        """
        if self.closed:
            message = f"{self.path}: the data set is closed"
            raise ClosedError(message, self.path)
        if not self._located:
            self._check_unchanged()
        with self._handle.use(row) as file:
            yield file
            if None not in self._located.values():
                self._handle.release()
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        try:
            if identity(self._location.file) == self._opened:
                return
        except FileNotFoundError:
            pass
        message = (
            f"{self._location.file}: the file was changed or removed after it was opened: "
            "open it again"
        )
        raise FormatError(message, self._location.file)

    @cached_property
    def identity(self) -> str:
        """What tells the content of the file from others, and the place in it."""
        self._check_unchanged()
        return identity_of([*contents(self.paths), self._location.inside])

    @cached_property
    def _metadata(self) -> str:
        with self._h5py() as file:
            root = file[self._location.inside] if self._location.inside else file
            paths = {one.path for one in self._columns.values()}
            return json.dumps(metadata_of(file, root, paths))

    @property
    def metadata(self) -> dict[str, Any]:
        """The attributes: those of a data set under its path and an @, as `image@units`."""
        loaded: dict[str, Any] = json.loads(self._metadata)
        return loaded

    @property
    def nbytes(self) -> int:
        """The size of the file."""
        return self._opened[0]

    def __len__(self) -> int:
        return self._rows

    def _reading(self, names: tuple[str, ...]) -> "_Reading":
        """Return how the columns of some fields are read; where they are is looked up once."""
        latest, reading = self._latest
        if names == latest:
            return reading
        columns = {self._columns[name].path: self._columns[name] for name in names}
        missing = [path for path in columns if path not in self._located]
        if missing:
            with self._h5py() as file:
                for path in missing:
                    self._located[path] = chunks.locate(columns[path], file[path], self._native)
        located = [(one, self._located[path]) for path, one in columns.items()]
        reading = _Reading(
            [one for one, found in located if found is not None],
            [found for _, found in located if found is not None],
            [one for one, found in located if found is None],
        )
        self._latest = (names, reading)
        return reading

    def _read(self, numbers: Numbers, names: Iterable[str]) -> list[_Found]:
        """Return what rows have of the columns of fields, and how it is decoded."""
        reading = self._reading(tuple(names))
        found: list[_Found] = []
        if reading.located:
            packed = self._native.read(reading.located, numbers)
            pairs = zip(reading.by_engine, packed, strict=True)
            found += [(column, column.decode, one) for column, one in pairs]
        for column in reading.by_h5py:
            with self._h5py(int(numbers[0]) if len(numbers) == 1 else None):
                one = chunks.read(self._handle.dataset(column.path), numbers)
            found.append((column, column.pick, one))
        return found

    def _decoded(self, numbers: Numbers, found: Iterable[_Found]) -> Row:
        """Return the values that rows have of each field, and of those stored with them."""
        values: Row = {}
        for column, decode, one in found:
            try:
                values |= decode(one)
            except ValueError as error:
                if len(numbers) > 1:
                    for number in numbers:  # Which row it is comes out then.
                        row = number.reshape(1)
                        self._decoded(row, self._read(row, column.fields))
                field = next(iter(column.fields.values()))
                raise undecodable(field, self.path, int(numbers[0]), error) from error
        return values

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""

        def decode(found: list[_Found]) -> Row:
            values = self._decoded(numbers, found)
            return {name: stacked(picked(values[name], picks)) for name, picks in wanted.items()}

        return OwnPlan(lambda: self._read(numbers, wanted), decode)

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file would store them."""
        return encoded(self, names, numbers)

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together: at least those of a chunk that h5py decodes."""
        reading = self._reading(tuple(names))
        height = _BLOCK_ROWS
        for column in reading.by_h5py:
            with self._h5py():
                shape = self._handle.dataset(column.path).chunks or (1,)
            height = max(height, shape[0])
        columns = [*reading.by_engine, *reading.by_h5py]
        row_bytes = sum(one.item * math.prod(one.shape) for one in columns)
        height = max(1, min(height, _BLOCK_BYTES // max(1, row_bytes)))
        return (1 if any(one.varies for one in columns) else height), height

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field, which HDF5 has in one piece."""
        if not isinstance(numbers, range) or self.spec.fields[name].kind != "column":
            return super().column(name, numbers)
        column = self._columns[name]
        with self._h5py() as file:
            found = chunks.read(file[column.path], numbers)
        return np.asarray(column.pick(found)[name])

    def verify(self, progress: Progress) -> Verification:
        """Read what the file has values of; HDF5 checks the data sets that it has checksums of."""
        damaged: list[Damage] = []
        total = len(self)
        written: list[range] = []
        checked: set[str] = set()
        for path in {one.path: None for one in self._columns.values()}:
            try:
                with self._h5py() as file:
                    written += chunks.written(file[path])
                    checked |= {path} if chunks.is_checked(file[path]) else set()
            except FormatError as error:  # Where its rows are cannot be known.
                damaged.append(Damage(0, total, getattr(error, "offset", None) or 0, str(error)))
        ranges = [*_disjoint(written)]
        damaged += self.damaged(ranges, progress)
        if progress is not None and (not ranges or ranges[-1].stop < total):
            progress(total, total)
        unchecked = [name for name, one in self._columns.items() if one.path not in checked]
        return Verification(total, damaged, tuple(unchecked))

    def check(self, numbers: Numbers) -> None:
        """Read rows whole."""
        self._decoded(numbers, self._read(numbers, self._columns))

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self._native.close()
        self._handle.release()


def _disjoint(ranges: Iterable[range]) -> Iterator[range]:
    """Yield ranges in order, and each number in them once."""
    stop = 0
    for one in sorted(ranges, key=lambda one: one.start):
        if one.stop > stop:
            yield range(max(one.start, stop), one.stop)
            stop = one.stop


def _reopened(location: Location, stamp: Stamp, options: dict[str, bool]) -> Hdf5Rows:
    """Open a file again; it must not have changed."""
    if identity(location.file)[:2] != stamp:
        message = f"{location.file}: the file was changed since this data set was opened"
        raise FormatError(message, location.file)
    return Hdf5Rows(location, **options)
