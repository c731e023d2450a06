"""Rows that are in an HDF5 file."""

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import Hdf5Column, Hdf5File, contents
from ingot.cached import cached_property
from ingot.dataset.read.decoding import undecodable
from ingot.dataset.read.hdf5 import chunks
from ingot.dataset.read.hdf5.attributes import metadata_of
from ingot.dataset.read.hdf5.column import Column
from ingot.dataset.read.hdf5.handle import Handle
from ingot.dataset.read.hdf5.location import Location
from ingot.dataset.read.hdf5.table import Table
from ingot.dataset.read.identity import identity_of
from ingot.dataset.read.plan import OwnPlan, Plan
from ingot.dataset.read.source import Elements, Picks, Row
from ingot.dataset.read.stacking import picked, stacked
from ingot.dataset.spec import Spec
from ingot.errors import ClosedError, FormatError, StorageError
from ingot.records import Damage, Verification
from ingot.records.indices import Rows

Numbers: TypeAlias = npt.NDArray[np.int64]
Stamp: TypeAlias = tuple[int, int]
"""The size of a file and when it was changed."""

_STEP = 1024
"""Rows that are verified together."""

_BLOCK_ROWS = 256
_BLOCK_BYTES = 64 << 20
"""How much is read ahead when rows are gone through: at least a row of chunks."""


class _Reading(NamedTuple):
    """How columns are read: by the engine, from where it knows them to be, or by h5py."""

    by_engine: list[Column]
    located: list[Hdf5Column]
    by_h5py: list[Column]


class Hdf5Rows:
    """Rows of data sets that share their first dimension.

    What lies in one piece, or in chunks without a filter, is read by the engine, the rest by
    h5py.

    Args:
        location: The file, or a place in it.
        partial: Whether a file that its writer has not finished is read, too.
        allow_external: Whether virtual data sets may have values of other files.

    Raises:
        FormatError: There are no such rows, or the file is damaged.
    """

    def __init__(
        self, location: Location, *, partial: bool = False, allow_external: bool = False
    ) -> None:
        self._location = location
        self._allow_external = allow_external
        self._handle = Handle(location.file, partial=partial)
        self.path = str(location)
        self.paths = [location.file]
        self._stamp = _stamp(location.file)
        with self._handle.use() as file:
            table = Table.of(file, location, partial=partial, allow_external=allow_external)
        self.others = table.others
        self._rows = table.rows
        self._columns = {name: one for one in table.columns for name in one.fields}
        self.spec = Spec({name: one.fields[name] for name, one in self._columns.items()})
        self._native = Hdf5File(location.file)
        self._is_closed = False
        self._located: dict[str, Hdf5Column | None] = {}
        self._latest: tuple[tuple[str, ...], _Reading] = ((), _Reading([], [], []))
        self._handle.release()

    @classmethod
    def open(cls, location: Location, stamp: Stamp, *, partial: bool, allow_external: bool) -> Self:
        """Open a file once more, which must be as it was.

        Raises:
            FormatError: It was changed.
        """
        if _stamp(location.file) != stamp:
            message = f"{location.file}: the file was changed since this data set was opened"
            raise FormatError(message, location.file)
        return cls(location, partial=partial, allow_external=allow_external)

    def __reduce__(self) -> tuple[Any, ...]:
        options = self._handle.partial, self._allow_external
        return _reopened, (*self._location, self._stamp, options)

    @contextmanager
    def _h5py(self, row: int | None = None) -> Iterator[Any]:
        """Yield the file as h5py has it; it must be as it was when this was opened.

        It stays open, and locked for writers, only if there are columns that the engine
        cannot read.
        """
        if self._is_closed:
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
            if _stamp(self._location.file) == self._stamp:
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
        return self._stamp[0]

    def __len__(self) -> int:
        return self._rows

    def _reading(self, names: tuple[str, ...]) -> "_Reading":
        """Return how the columns of some fields are read; where they lie is looked up once."""
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

    def _read(self, numbers: Numbers, names: Iterable[str]) -> Row:
        """Return the values that rows have of each field, and of those stored with them."""
        reading = self._reading(tuple(names))
        values: Row = {}
        if reading.located:
            packed = self._native.read(reading.located, numbers)
            for column, one in zip(reading.by_engine, packed, strict=True):
                values.update(self._decoded(column, column.decode, one, numbers))
        for column in reading.by_h5py:
            with self._h5py(int(numbers[0]) if len(numbers) == 1 else None):
                found = chunks.read(self._handle.dataset(column.path), numbers)
            values.update(self._decoded(column, column.pick, found, numbers))
        return values

    def _decoded(
        self, column: Column, decode: Callable[[Any], Row], found: Any, numbers: Numbers
    ) -> Row:
        try:
            return decode(found)
        except ValueError as error:
            if len(numbers) > 1:
                for number in numbers:  # Which row it is comes out then.
                    self._read(number.reshape(1), column.fields)
            field = next(iter(column.fields.values()))
            raise undecodable(field, self.path, int(numbers[0]), error) from error

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Return what is wanted of one row."""
        found = self._read(np.array([number], np.int64), wanted)
        fields = self.spec.fields
        return {
            name: found[name][0][slice(*elements)] if fields[name].is_sequence else found[name][0]
            for name, elements in wanted.items()
        }

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

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return how many elements rows have of a sequence."""
        each = np.asarray(numbers, np.int64)
        starts = range(0, len(each), _STEP)
        blocks = (self._read(each[start : start + _STEP], [name])[name] for start in starts)
        return np.array([len(one) for block in blocks for one in block], np.int64)

    def plan(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        return OwnPlan(lambda: self.read_rows(numbers, wanted))

    def read_rows(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Row:
        """Return what is wanted of rows, of each field stacked to an array where that can be."""
        found = self._read(numbers, wanted)
        return {name: stacked(picked(found[name], picks)) for name, picks in wanted.items()}

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return what a row has of each field."""
        sequences = [name for name in names if self.spec.fields[name].is_sequence]
        found = self._read(np.array([number], np.int64), sequences)
        return {name: range(len(found[name][0])) if name in found else True for name in names}

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers that rows have of a field."""
        field = self.spec.fields[name]
        if field.kind != "column":
            message = f"{self.path}: field {name!r} is {field.type}, and not a number in each row"
            raise TypeError(message)
        column = self._columns[name]
        if not isinstance(numbers, range):
            return np.asarray(self._read(numbers, [name])[name])
        with self._h5py() as file:
            found = chunks.read(file[column.path], numbers)
        return np.asarray(column.pick(found)[name])

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return that rows have a value: there are none that may go without."""
        del name
        return np.ones(len(numbers), np.bool_)

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
        """Read what the file has values of; HDF5 checks the data sets that it has checksums of."""
        damaged: list[Damage] = []
        total, done = len(self), 0
        columns = {one.path: one for one in self._columns.values()}
        written: list[range] = []
        checked: set[str] = set()
        for path in columns:
            try:
                with self._h5py() as file:
                    written += chunks.written(file[path])
                    checked |= {path} if chunks.is_checked(file[path]) else set()
            except FormatError as error:  # Where its rows are cannot be known.
                damaged.append(Damage(0, total, getattr(error, "offset", None) or 0, str(error)))
        for rows in _disjoint(written):
            for start in range(rows.start, rows.stop, _STEP):
                done = min(start + _STEP, rows.stop)
                try:
                    self._read(np.arange(start, done), self._columns)
                except (FormatError, StorageError):
                    damaged += [one for k in range(start, done) for one in self._damage(k)]
                if progress is not None:
                    progress(done, total)
        if progress is not None and done < total:
            progress(total, total)
        unchecked = [name for name, one in self._columns.items() if one.path not in checked]
        return Verification(total, damaged, tuple(unchecked))

    def _damage(self, number: int) -> list[Damage]:
        try:
            self._read(np.array([number]), self._columns)
        except (FormatError, StorageError) as error:
            return [Damage(number, 1, getattr(error, "offset", None) or 0, str(error))]
        return []

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._is_closed

    def close(self) -> None:
        """Close the file."""
        self._is_closed = True
        self._native.close()
        self._handle.release()


def _disjoint(ranges: Iterable[range]) -> Iterator[range]:
    """Yield ranges in order, and each number in them once."""
    stop = 0
    for one in sorted(ranges, key=lambda one: one.start):
        if one.stop > stop:
            yield range(max(one.start, stop), one.stop)
            stop = one.stop


def _stamp(path: str) -> Stamp:
    found = os.stat(path)  # noqa: PTH116
    return found.st_size, found.st_mtime_ns


def _reopened(file: str, inside: str, stamp: Stamp, options: tuple[bool, bool]) -> Hdf5Rows:
    partial, allow_external = options
    location = Location(file, inside)
    return Hdf5Rows.open(location, stamp, partial=partial, allow_external=allow_external)
