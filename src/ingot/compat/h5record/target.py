"""Where rows go: a file of HDF5, or one of Ingot."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from ingot.codecs.array import FixedArray
from ingot.compat.h5record.schema import KEY
from ingot.dataset import Dataset, DatasetWriter
from ingot.dataset.hdf5.writer import Hdf5Writer, NewColumn, partial_path
from ingot.dataset.open import open as open_any

Batch: TypeAlias = Mapping[str, Sequence[Any]]
Shapes: TypeAlias = dict[str, tuple[int, ...] | None]
"""The shape of the values of each column; None if they vary."""

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
        shapes: What values it takes.
    """

    rows: int
    shapes: Shapes

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
        self.shapes: Shapes = {
            one.name: None if one.varies else one.shape for one in writer.columns
        }

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
        if path.exists():
            return f"{path} has its {begun} rows as before, and none of the new ones"
        if not kept:
            return f"{path} was not made"
        return (
            f"{path} was not made; {kept} rows are kept in {partial_path(path).name}, and "
            "append_mode=True goes on behind them"
        )


class IngotTarget:
    """A file of Ingot."""

    def __init__(self, path: Path, writer: DatasetWriter, *, replaces: bool = False) -> None:
        self._path = path
        self._replaces = replaces
        self._writer = writer
        self.rows = len(writer)
        fields = writer.spec.fields.values()
        self.shapes: Shapes = {
            one.name: None if one.is_sequence or one.codec.dtype is None else tuple(one.codec.shape)
            for one in fields
        }

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
        return cls(path, writer, replaces=replaces)

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Go on with a file, also with one that is not whole."""
        found = open_any(path, partial=True)
        if not isinstance(found, Dataset):
            message = f"{path}: this is a file of records, not a data set"
            raise TypeError(message)
        return cls(path, DatasetWriter(path, found.spec, append=True))

    def write(self, batch: Batch) -> None:
        """Add rows."""
        names = list(batch)
        for values in zip(*batch.values(), strict=True):
            self._writer.append(dict(zip(names, values, strict=True)))
        self.rows = len(self._writer)

    def finish(self) -> None:
        """Make the file whole."""
        self._writer.close()

    def keep(self) -> str:
        """Commit the rows so far without making the file whole."""
        if self.rows and not self._replaces:
            self._writer.flush()
        self._writer.abandon()
        if not self.rows:
            return f"{self._path} was not made"
        if self._replaces:
            return f"{self._path} is as it was, and still not finished"
        return (
            f"{self._path} is left unfinished with {self.rows} rows, and append_mode=True goes "
            "on behind them"
        )


def _type(column: NewColumn) -> str:
    """Return the type of a column in Ingot."""
    if not column.varies:
        return FixedArray(column.dtype, *column.shape).name
    if column.element is str:
        return "utf8"
    return "array" if column.values else f"{FixedArray(np.dtype(column.element)).name}[]"
