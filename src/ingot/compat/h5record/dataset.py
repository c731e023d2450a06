"""A file of rows, with H5Record's API."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ingot
from ingot import Dataset
from ingot.compat.h5record.schema import KEY, Schema, parsed, schema_of, value_of
from ingot.compat.h5record.target import SUFFIX, check_compression
from ingot.compat.h5record.values import torch_dataset
from ingot.compat.h5record.writer import RowWriter
from ingot.compat.handle import Closing
from ingot.errors import FormatError, UnfinishedFileError
from ingot.formats.hdf5 import partial_path

if TYPE_CHECKING:
    Base = object
else:
    Base = torch_dataset()

_ROWS_MAX = 2**63
_PAUSE_S = 1.0


class H5Dataset(Closing, Base):
    """Rows of a file, which is written from `data_iter` if it does not exist.

    A path that ends in `.ingot` is an Ingot file, any other an HDF5 file. Each process opens the
    file when it first reads it, so a data set can be pickled and works in workers of every start
    method. Several threads may use it at the same time.

    Args:
        schema: The columns: a list of attributes, or a dict of them by name. For reading, some
            of the columns suffice. None for the schema that Ingot has stored in the file.
        save_filename: The file.
        data_iter: Rows, dicts with a value for each attribute. If the file exists, they are
            not used, unless `append_mode` is given.
        data_length: The maximum number of rows.
        chunk_size: The number of rows to write together, and the number of rows in an HDF5
            chunk unless they are large.
        compression: None, "gzip", "lzf" or "szip"; HDF5 compresses neither text nor sequences.
            In an Ingot file these mean zstd, lz4 and zstd, for all values.
        transform: Called with each row; returns the item.
        append_mode: Append the rows of `data_iter` to the existing rows.
        verbose: 1 for a progress line on standard error while writing.
        to_memory: Read everything now.
        multiprocess: Does nothing: workers can always share a file.

    Attributes:
        schema: The columns by name.
        save_filename, data_length, chunk_size, compression, transform, append_mode: As given.
        num_entries: The number of rows.

    Raises:
        FileNotFoundError: The file does not exist, and there is no `data_iter`.
        FormatError: The file lacks columns of the schema, or is damaged.
        UnfinishedFileError: The file was not finished by its writer.
    """

    def __init__(
        self,
        schema: Any,
        save_filename: str | os.PathLike[str],
        data_iter: Iterable[Any] | None = None,
        data_length: int | None = None,
        chunk_size: int = 300,
        compression: str | None = None,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        append_mode: bool = False,
        verbose: int = 0,
        to_memory: bool = False,
        multiprocess: bool = False,
    ) -> None:
        del multiprocess
        self.save_filename = save_filename
        self.data_length = data_length
        self.chunk_size = chunk_size
        self.compression = compression
        self.transform = transform
        self.append_mode = append_mode
        self.verbose = verbose
        path = self._path = Path(os.path.realpath(os.path.expanduser(save_filename)))  # noqa: PTH111
        check_compression(path, compression)
        if data_length is not None and not 0 <= data_length < _ROWS_MAX:
            message = f"data_length must be a number of rows below 2^63, got {data_length!r:.40}"
            raise ValueError(message)
        self.schema: Schema = {} if schema is None else schema_of(schema)
        if not path.exists() or (append_mode and data_iter is not None):
            self.preprocess(data_iter)
        opened = self._open(data_iter)
        if not isinstance(opened, Dataset):
            message = f"{path}: expected a data set, got a file of records"
            raise FormatError(message, str(path))
        self.schema = self.schema or parsed(_kept_schema(opened, path), str(path))
        self._rows = _selected(opened, self.schema, path)
        self._file: tuple[int, Any] | None = None
        self.num_entries = len(self._rows)
        self._memory: dict[str, Any] | None = None
        if to_memory:
            found = self._rows[np.arange(self.num_entries)]
            self._memory = {name: value_of(found, name) for name in self.schema}
            self._rows.close()

    def _open(self, data_iter: Iterable[Any] | None) -> object:
        try:
            return ingot.open(self._path)
        except UnfinishedFileError as error:
            if self._path.suffix != SUFFIX:
                raise
            if data_iter is None or self.append_mode:
                error.add_note("append_mode=True appends to its rows; data_iter alone starts over")
                raise
        self.preprocess(data_iter)
        return ingot.open(self._path)

    def preprocess(self, data_iter: Iterable[Any] | None) -> None:
        """Write rows to the file; with `append_mode`, after the existing rows."""
        path = self._path
        if data_iter is None or not self.schema:
            message = f"{path}: the file does not exist; pass schema and data_iter to create it"
            if path.suffix != SUFFIX and partial_path(path).exists():
                kept = f"{partial_path(path).name} holds the rows of an unfinished writer"
                message += f"; {kept}, and append_mode=True continues it"
            raise FileNotFoundError(message)
        began = shown = time.monotonic()
        writer = None
        try:
            writer = RowWriter(
                path,
                self.schema,
                append=self.append_mode,
                data_length=self.data_length,
                chunk_size=max(1, self.chunk_size),
                compression=self.compression,
            )
            for row in data_iter:
                writer.append(row)
                if self.verbose and time.monotonic() > shown + _PAUSE_S:
                    shown = _show(path, writer, began)
            writer.finish()
        except BaseException as error:
            if writer is not None:
                error.add_note(writer.keep())
            raise
        if self.verbose:
            _show(path, writer, began)

    @property
    def reader(self) -> Any:
        """The source of rows: an `h5py.File`, an `ingot.Dataset`, or a dict in memory."""
        if self._memory is not None:
            return self._memory
        if self._path.suffix == SUFFIX:
            return self._rows
        if self._file is None or self._file[0] != os.getpid():
            self._file = os.getpid(), import_module("h5py").File(self._path, "r")
        return self._file[1]

    def __len__(self) -> int:
        return self.num_entries

    def __getitem__(self, idx: Any) -> Any:
        """Return a row; for a slice or a list of indices, a dict of columns."""
        if isinstance(idx, slice | list | tuple | range) or getattr(idx, "ndim", 0) > 0:
            found = self._read(_places(idx, self.num_entries))
            row = {name: one.results(found[name]) for name, one in self.schema.items()}
        else:
            found = self._read(idx)
            row = {name: one.result(found[name]) for name, one in self.schema.items()}
        return row if self.transform is None else self.transform(row)

    def _read(self, places: Any) -> dict[str, Any]:
        """Return the values of one row, or the columns of several."""
        if self._memory is None:
            found = self._rows[places]
            return {name: value_of(found, name) for name in self.schema}
        if not isinstance(places, Iterable) or getattr(places, "ndim", 1) == 0:
            place = range(self.num_entries)[places]
            return {name: values[place] for name, values in self._memory.items()}
        numbers = [range(self.num_entries)[place] for place in places]
        return {
            name: values[numbers]
            if isinstance(values, np.ndarray)
            else [values[k] for k in numbers]
            for name, values in self._memory.items()
        }

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return rows, read together; PyTorch's loader calls this per batch."""
        if type(self).__getitem__ is not H5Dataset.__getitem__:
            return [self[index] for index in indices]
        found = self._read(indices)
        columns = [(name, one.result, found[name]) for name, one in self.schema.items()]
        rows = [
            {name: result(values[k]) for name, result, values in columns}
            for k in range(len(indices))
        ]
        return rows if self.transform is None else [self.transform(row) for row in rows]

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        if self._memory is None:
            self._rows.close()
        if self._file is not None and self._file[0] == os.getpid():
            self._file[1].close()
        self._file = None

    def __getstate__(self) -> dict[str, Any]:
        left_out = ["_file"] if self._memory is None else ["_file", "_rows"]
        return self.__dict__ | dict.fromkeys(left_out)

    def __repr__(self) -> str:
        columns = list(self.schema.values())
        return f"<H5Dataset of {self.num_entries} rows of {columns} in {str(self._path)!r}>"


def _places(idx: Any, count: int) -> Any:
    """Return the rows that a slice, a mask or a list selects."""
    if isinstance(idx, slice):
        return np.arange(count)[idx]
    if getattr(idx, "dtype", None) is not None and np.asarray(idx).dtype == np.bool_:
        return np.arange(count)[np.asarray(idx)]
    return idx


def _show(path: Path, writer: RowWriter, began: float) -> float:
    """Write a progress line to standard error; return the time."""
    now = time.monotonic()
    rate = writer.rows / max(now - began, 1e-9)
    name = str(path) if str(path).isprintable() else repr(str(path))
    figures = f"{writer.rows:,} rows, {rate:,.0f}/s, {writer.nbytes / 1e6:,.1f} MB"
    sys.stderr.write(f"{name}: {figures}\n")
    return now


def _kept_schema(opened: Dataset, path: Path) -> object:
    if path.suffix == SUFFIX:
        return opened.metadata.get(KEY)
    with import_module("h5py").File(path, "r") as file:
        return file.attrs.get(KEY)


def _selected(opened: Dataset, schema: Schema, path: Path) -> Dataset:
    """Return the columns of a schema.

    Raises:
        FormatError: Some are missing.
    """
    missing = [name for name in schema if name not in opened.spec]
    if missing:
        message = f"{path}: there is no column {missing[0]!r} in {list(opened.spec)}"
        if missing[0] in opened.others:
            message = (
                f"{path}: column {missing[0]!r} has another number of rows than the others, or an "
                f"unknown type: a row was written without it; ingot.open reads {list(opened.spec)}"
            )
        raise FormatError(message, str(path))
    return opened.select(*schema)


class AtomicFile:
    """A file for reading, with its own position.

    Args:
        path: The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.fd = os.open(path, os.O_RDONLY)
        self.pos = 0

    def seek(self, pos: int, whence: int = 0) -> int:
        """Go to a position, relative to the start, the current position, or the end."""
        start = (0, self.pos, os.fstat(self.fd).st_size)[whence]
        self.pos = start + pos
        return self.pos

    def tell(self) -> int:
        """Return the position."""
        return self.pos

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most `size`."""
        found = os.pread(self.fd, size, self.pos)
        self.pos += len(found)
        return found

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def __del__(self) -> None:
        if hasattr(self, "fd"):
            self.close()
