"""The file that rows are written to: HDF5, or Ingot."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

import ingot
from ingot import Dataset, DatasetWriter
from ingot.codecs import FixedArray
from ingot.compat.h5record.schema import KEY, Schema, parsed, text_of
from ingot.compat.handle import subject
from ingot.errors import FormatError
from ingot.formats.hdf5 import Hdf5Writer, NewColumn, partial_path

Batch: TypeAlias = Mapping[str, Sequence[Any]]

SUFFIX = ".ingot"
"""The suffix of Ingot files."""

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


def check_compression(path: Path, compression: object) -> None:
    """Refuse a compression that the file format does not support.

    Raises:
        ValueError: It does not.
    """
    known = _INGOT_COMPRESSION if path.suffix == SUFFIX else (None, *HDF5_COMPRESSION)
    if compression not in known:
        message = f"compression must be one of {', '.join(map(repr, known))}, got {compression!r}"
        raise ValueError(message)


class Hdf5Target(Hdf5Writer):
    """An HDF5 file."""

    def settle(self) -> str:
        """Leave a new file under another name, and an old one as it was; return a description."""
        path, kept = self.path, self.keep()
        if self.is_finished:
            return f"{path} is finished"
        if not self.is_new:
            return f"{path} has its {self.begun} rows as before, and none of the new ones"
        if not kept:
            return f"{path} was not made"
        rows = subject(kept, "row")
        if path.exists():
            kept_in = partial_path(path).name
            return f"another process has meanwhile created {path}; {rows} kept in {kept_in}"
        return (
            f"{path} was not made; {rows} kept in {partial_path(path).name}: continue "
            f"with the rows from {kept} on and append_mode=True, or start over without it"
        )


class IngotTarget:
    """An Ingot file."""

    def __init__(
        self,
        path: Path,
        writer: DatasetWriter,
        columns: Sequence[NewColumn],
        *,
        replaces: bool = False,
        old: "_Whole | None" = None,
    ) -> None:
        self._path = path
        self._replaces = replaces
        self._writer = writer
        self.rows = self._begun = len(writer)
        self.columns = columns
        self._shapes = {one.name: one.values for one in columns if one.values}
        self._old = old
        self._process = os.getpid()
        self._is_done = False

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Continue a file, even an unfinished one."""
        found = ingot.open(path, partial=True)
        if not isinstance(found, Dataset):
            message = f"{path}: expected a data set, got a file of records"
            raise TypeError(message)
        try:
            schema = parsed(found.metadata.get(KEY), str(path))
        except FormatError:  # There is no schema, or it has the user's own classes.
            schema = {}
        columns = [
            _column(field, schema[name].column().values if name in schema else None)
            for name, field in found.spec.fields.items()
        ]
        old = _Whole(path) if found.stats().closed else None
        writer = None
        try:
            writer = DatasetWriter(path, found.spec, append=True)
            return cls(path, writer, columns, old=old)
        except BaseException:
            if writer is not None:
                writer.abandon()
            if old is not None:
                old.restore()
            raise

    def write(self, batch: Batch) -> None:
        """Append rows."""
        for values in zip(*batch.values(), strict=True):
            row = dict(zip(batch, values, strict=True))
            shaped = {name: row[name].reshape(shape) for name, shape in self._shapes.items()}
            self._writer.append(row | shaped)
        self.rows = len(self._writer)

    def finish(self) -> None:
        """Finish the file."""
        self._writer.close()
        self._is_done = True

    def __del__(self) -> None:
        if not getattr(self, "_is_done", True):
            self.settle()

    def settle(self) -> str:
        """Commit the rows so far without finishing the file; return a description."""
        self._is_done = True
        if os.getpid() != self._process:
            return f"{self._path} is being written by the parent of this process"
        if self._writer.closed:
            return f"{self._path} is finished"
        if self._old is None:
            return self._keep_new()
        self._writer.abandon()
        if self._old.restore():
            return f"{self._path} has its {self._begun} rows as before, and none of the new ones"
        return f"{self._path} was replaced meanwhile, and stays as it is"

    def _keep_new(self) -> str:
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
            f"{self._path} is left unfinished with {self.rows:,} row{'s' * (self.rows != 1)}: "
            f"continue with the rows from {self.rows} on and append_mode=True, or start over "
            "without it"
        )


Target: TypeAlias = Hdf5Target | IngotTarget
"""A file that takes rows in batches."""


def create(
    path: Path,
    schema: Schema,
    first: Mapping[str, Any],
    *,
    data_length: int | None,
    chunk_size: int,
    compression: str | None,
) -> Target:
    """Start a file; `first` is its first row in its stored form, or empty."""
    columns = [one.column(first.get(name)) for name, one in schema.items()]
    metadata = {KEY: text_of(schema)}
    if path.suffix == SUFFIX:
        # The file of an unfinished writer is replaced when this one finishes.
        replaces = path.exists()
        writer = DatasetWriter(
            path,
            {one.name: _type(one) for one in columns},
            compression=_INGOT_COMPRESSION[compression],
            metadata=metadata,
            overwrite=replaces,
        )
        return IngotTarget(path, writer, columns, replaces=replaces)
    return Hdf5Target.create(
        path,
        columns,
        rows_max=data_length,
        chunk_rows=chunk_size,
        compression=compression,
        attributes=metadata,
    )


def resume(path: Path) -> Target | None:
    """Continue a file, or what was kept of it; return None if there is nothing."""
    if path.suffix == SUFFIX:
        return IngotTarget.resume(path) if path.exists() else None
    if path.exists() or partial_path(path).exists():
        return Hdf5Target.append(path)
    return None


class _Whole:
    """A finished Ingot file, which can be restored after rows were appended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._nbytes = os.fstat(self._handle).st_size

    def restore(self) -> bool:
        """Cut off what was appended after the old end; return whether the file still exists."""
        try:
            os.ftruncate(self._handle, self._nbytes)
            return os.path.samestat(os.fstat(self._handle), self._path.stat())
        except FileNotFoundError:
            return False

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            os.close(self._handle)


def _column(field: Any, values: tuple[int, ...] | None) -> NewColumn:
    """Return the column of an Ingot field."""
    dtype = field.codec.dtype
    if dtype is not None and not field.is_sequence:
        return NewColumn(field.name, dtype, tuple(field.codec.shape))
    element = str if field.codec.name == "utf8" else dtype or np.dtype("uint8")
    return NewColumn(field.name, np.dtype("O", metadata={"vlen": element}), (1,), values)


def _type(column: NewColumn) -> str:
    """Return the Ingot type of a column."""
    if not column.varies:
        return FixedArray(column.dtype, *column.shape).name
    if column.element is str:
        return "utf8"
    return "array" if column.values else f"{FixedArray(np.dtype(column.element)).name}[]"
