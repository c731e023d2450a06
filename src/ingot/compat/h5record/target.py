"""Where rows go: a file of HDF5, or one of Ingot."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from ingot.codecs.array import FixedArray
from ingot.compat.h5record.schema import KEY, parsed
from ingot.dataset import Dataset, DatasetWriter
from ingot.dataset.hdf5.writer import Hdf5Writer, NewColumn, partial_path
from ingot.dataset.open import open as open_any
from ingot.dataset.spec import Field
from ingot.errors import FormatError, UnfinishedFileError

Batch: TypeAlias = Mapping[str, Sequence[Any]]
Columns: TypeAlias = dict[str, NewColumn]

SUFFIX = ".ingot"
"""Files of this name are those of Ingot."""

HDF5_COMPRESSION = ("gzip", "lzf", "szip")
_INGOT_COMPRESSION: dict[str | None, Any] = {
    None: None,
    "gzip": "zstd",
    "szip": "zstd",
    "lzf": "lz4",
    "auto": "auto",
    "zstd": "zstd",
    "lz4": "lz4",
}


class Target(Protocol):
    """A file that takes rows in batches.

    Attributes:
        rows: How many rows it has.
        columns: What values it takes.
    """

    rows: int
    columns: Columns

    def write(self, batch: Batch) -> None:
        """Add as many values of each column."""

    def finish(self) -> None:
        """Make the file whole."""

    def keep(self) -> str:
        """Keep what can be kept, in a file that is not whole; return what that is."""


def create(
    path: Path,
    columns: Sequence[NewColumn],
    *,
    schema: str,
    data_length: int | None,
    chunk_size: int,
    compression: str | None,
) -> Target:
    """Begin a file."""
    if path.suffix == SUFFIX:
        return IngotTarget.create(path, columns, schema, compression)
    writer = Hdf5Writer.create(
        path,
        columns,
        rows_max=data_length,
        chunk_rows=chunk_size,
        compression=compression,
        attributes={KEY: schema},
    )
    return Hdf5Target(writer)


def resume(path: Path) -> Target | None:
    """Go on with a file, or with what was kept of one; None if there is nothing."""
    if path.suffix == SUFFIX:
        return IngotTarget.resume(path) if path.exists() else None
    if path.exists() or partial_path(path).exists():
        return Hdf5Target(Hdf5Writer.append(path))
    return None


def check_compression(path: Path, compression: object) -> None:
    """Refuse a compression that a file cannot have.

    Raises:
        ValueError: It cannot.
    """
    known = _INGOT_COMPRESSION if path.suffix == SUFFIX else (None, *HDF5_COMPRESSION)
    if compression not in known:
        message = f"compression is one of {', '.join(map(repr, known))}, not {compression!r}"
        raise ValueError(message)


class Hdf5Target:
    """A file of HDF5."""

    def __init__(self, writer: Hdf5Writer) -> None:
        self._writer = writer
        self.rows = writer.rows
        self.columns: Columns = {one.name: one for one in writer.columns}

    def write(self, batch: Batch) -> None:
        """Add rows."""
        self._writer.write(batch)
        self.rows = self._writer.rows

    def finish(self) -> None:
        """Make the file whole."""
        self._writer.finish()

    def keep(self) -> str:
        """Leave a new file under another name, and an old one as it was."""
        path, begun = self._writer.path, self._writer.begun
        kept = self._writer.keep()
        if self._writer.is_finished:
            return f"{path} is whole"
        if path.exists():
            return f"{path} has its {begun} rows as before, and none of the new ones"
        if not kept:
            return f"{path} was not made"
        return (
            f"{path} was not made; {kept} rows are kept in {partial_path(path).name}: go on with "
            f"the rows from {kept} on and append_mode=True, or begin anew without it"
        )


class IngotTarget:
    """A file of Ingot."""

    def __init__(
        self,
        path: Path,
        writer: DatasetWriter,
        columns: Columns,
        *,
        replaces: bool = False,
        whole: int | None = None,
    ) -> None:
        self._path = path
        self._replaces = replaces
        self._writer = writer
        self.rows = self._begun = len(writer)
        self.columns = columns
        self._whole = whole
        self._is_done = False

    @classmethod
    def create(
        cls, path: Path, columns: Sequence[NewColumn], schema: str, compression: str | None
    ) -> Self:
        """Begin a file."""
        spec = {one.name: _type(one) for one in columns}
        packing = _INGOT_COMPRESSION[compression]
        metadata = {KEY: schema}
        # What a writer has left that did not finish is replaced, when this one does.
        replaces = path.exists()
        writer = DatasetWriter(
            path, spec, compression=packing, metadata=metadata, overwrite=replaces
        )
        return cls(path, writer, {one.name: one for one in columns}, replaces=replaces)

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Go on with a file, also with one that is not whole."""
        found = open_any(path, partial=True)
        if not isinstance(found, Dataset):
            message = f"{path}: this is a file of records, not a data set"
            raise TypeError(message)
        try:
            schema = parsed(found.metadata.get(KEY), str(path))
        except FormatError:  # It has none, or classes of the user's own.
            schema = {}
        columns = {
            name: _column(field, schema[name].column().values if name in schema else None)
            for name, field in found.spec.fields.items()
        }
        whole = path.stat().st_size if _is_whole(path) else None
        writer = None
        try:
            writer = DatasetWriter(path, found.spec, append=True)
            return cls(path, writer, columns, whole=whole)
        except BaseException:
            if writer is not None:
                writer.abandon()
            if whole is not None:
                os.truncate(path, whole)
            raise

    def write(self, batch: Batch) -> None:
        """Add rows."""
        names = list(batch)
        shapes = {name: shape for name in names if (shape := self.columns[name].values)}
        for values in zip(*batch.values(), strict=True):
            row = dict(zip(names, values, strict=True))
            self._writer.append(row | {name: row[name].reshape(shapes[name]) for name in shapes})
        self.rows = len(self._writer)

    def finish(self) -> None:
        """Make the file whole."""
        self._writer.close()
        self._is_done = True

    def __del__(self) -> None:
        if not getattr(self, "_is_done", True):
            self.keep()

    def keep(self) -> str:
        """Commit the rows so far without making the file whole."""
        self._is_done = True
        if self._writer.closed:
            return f"{self._path} is whole"
        if self._whole is not None:
            self._writer.abandon()
            os.truncate(self._path, self._whole)  # What was added is behind the old end.
            return f"{self._path} has its {self._begun} rows as before, and none of the new ones"
        self.rows = len(self._writer)
        try:
            if self.rows and not self._replaces:
                self._writer.flush()
        except OSError as error:
            return f"{self._path} is left unfinished: {error}"
        finally:
            self._writer.abandon()
        if not self.rows:
            return f"{self._path} was not made"
        if self._replaces:
            return f"{self._path} is as it was, and still not finished"
        return (
            f"{self._path} is left unfinished with {self.rows} rows: go on with the rows from "
            f"{self.rows} on and append_mode=True, or begin anew without it"
        )


def _is_whole(path: Path) -> bool:
    try:
        open_any(path)
    except UnfinishedFileError:
        return False
    return True


def _column(field: Field, values: tuple[int, ...] | None) -> NewColumn:
    """Return a field of Ingot as a column."""
    dtype = field.codec.dtype
    if dtype is not None and not field.is_sequence:
        return NewColumn(field.name, dtype, tuple(field.codec.shape))
    element = str if field.codec.name == "utf8" else dtype or np.dtype("uint8")
    return NewColumn(field.name, np.dtype("O", metadata={"vlen": element}), (1,), values)


def _type(column: NewColumn) -> str:
    """Return the type of a column in Ingot."""
    if not column.varies:
        return FixedArray(column.dtype, *column.shape).name
    if column.element is str:
        return "utf8"
    return "array" if column.values else f"{FixedArray(np.dtype(column.element)).name}[]"
