"""Writes rows to an HDF5 file, in batches, so that it appears under its name when it is whole."""

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ingot._core import identity
from ingot.dataset.atomic import publish, sync_folder, writing
from ingot.errors import FormatError, StorageError, UnfinishedFileError
from ingot.formats.hdf5.file import SHAPE, UNFINISHED, h5py, translated
from ingot.formats.hdf5.output import Output
from ingot.records.expand import StrPath, absolute
from ingot.signals import deferred

_VERSIONS = ("v110", "v110")
"""What the file may use of HDF5: readers since version 1.10 understand it."""

_PIECE = 16 << 20
_CHUNK_BYTES = 256 << 10
_CHUNK_BYTES_FILTERED = 32 << 10
_PIXELS = 8
"""Elements that the filter szip takes together; it can do nothing with fewer."""

_NEW, _COPY = 1, 2
"""How an unfinished file is marked: a new one, or a copy of one to which rows are appended."""


class NewColumn(NamedTuple):
    """A column of an HDF5 file to write.

    Attributes:
        name: Its name.
        dtype: The dtype of its elements; h5py's dtypes of text and of arrays of varying length
            are allowed.
        shape: The shape of its value in a row.
        values: The shape in which `ingot.open` returns arrays of varying length, which HDF5 stores
            flat; -1 for the dimension that varies. None leaves them flat.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    values: tuple[int, ...] | None = None

    @property
    def varies(self) -> bool:
        """Whether values vary in length."""
        return self.dtype.kind == "O"

    @property
    def element(self) -> Any:
        """The type of the elements of values that vary in length; `str` for text."""
        return element_of(self.dtype)


def element_of(dtype: np.dtype[Any]) -> Any:
    """Return what h5py's type of values that vary in length says of their elements."""
    metadata: Mapping[str, Any] = dtype.metadata or {}
    return metadata["vlen"]


def partial_path(path: Path) -> Path:
    """Return the file that holds the rows of an HDF5 file until its writer finishes it."""
    return path.with_name(f"{path.name}.partial")


class Hdf5Writer:
    """Writes rows to an HDF5 file, in batches; `create` and `append` return one.

    The file appears under its name when it is finished, at the end of a `with` block or by
    `finish`. An exception inside `with` calls `keep`.

    Attributes:
        path: The file.
        rows: The number of rows so far.
        begun: The number of rows that it had when it was opened.
        is_finished: Whether it is finished.

    Example:
        >>> columns = [NewColumn("x", np.dtype("f4"), (3,))]  # doctest: +SKIP
        >>> with Hdf5Writer.create("x.h5", columns) as w:  # doctest: +SKIP
        ...     w.write({"x": np.zeros((10, 3), "f4")})
    """

    __module__ = "ingot.formats.hdf5"

    def __init__(
        self, path: Path, output: Output, file: Any, *, replaces: tuple[int, str, str] | None
    ) -> None:
        self.path = path
        self._output = output
        self._file = file
        self._replaces = replaces
        self._process = os.getpid()
        lengths = {name: dataset.shape[0] for name, dataset in _columns(file).items()}
        if len(set(lengths.values())) != 1:
            message = f"{path}: rows cannot be added to columns of different lengths: {lengths}"
            raise FormatError(message, str(path))
        self.rows: int = next(iter(lengths.values()))
        self.begun = self.rows
        self.is_finished = False

    @classmethod
    def create(
        cls,
        path: StrPath,
        columns: Sequence[NewColumn],
        *,
        rows_max: int | None = None,
        chunk_rows: int = 300,
        compression: str | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> Self:
        """Start a file.

        Args:
            path: The file, which must not exist when it is finished.
            columns: Its columns.
            rows_max: The maximum number of rows; None for any number.
            chunk_rows: The number of rows in a chunk, if they are not too large.
            compression: "gzip", "lzf" or "szip" for columns whose values have one size: HDF5
                does not compress others.
            attributes: Attributes of the file.

        Raises:
            StorageError: Another process is writing it, or the system refuses.
        """
        path = absolute(path)
        with writing(path):
            output = Output(partial_path(path))
            output.truncate(0)
            output.check()
        with deferred():
            with translated(str(path)):
                file = h5py().File(output, "w", libver=_VERSIONS)
                file.attrs[UNFINISHED] = _NEW
                for name, text in (attributes or {}).items():
                    file.attrs[name] = text
                for column in columns:
                    options = _options(column, rows_max, chunk_rows, compression)
                    dataset = file.create_dataset(column.name, dtype=column.dtype, **options)
                    if column.values is not None:
                        dataset.attrs[SHAPE] = column.values
                    del dataset
            output.check()
            return cls(path, output, file, replaces=None)

    @classmethod
    def append(cls, path: StrPath) -> Self:
        """Continue a file: in a copy of it, or with the rows that an earlier writer has kept.

        Raises:
            StorageError: Another process is writing it, or the system refuses.
            FormatError: It is not an HDF5 file, or damaged; or there is a file, and beside it
                rows that an earlier writer has kept for a new one.
        """
        path = absolute(path)
        with writing(path):
            output = Output(partial_path(path))
        replaces = identity(str(path)) if path.exists() else None
        is_copy = False
        try:
            if replaces is not None:
                _check_not_kept(path, output)
                is_copy = True
                with translated(str(path)), h5py().File(path, "r"):  # No process is writing to it.
                    _copy(path, output)
            with deferred():
                file = _resumed(output, _NEW if replaces is None else _COPY)
                return cls(path, output, file, replaces=replaces)
        except BaseException:
            if is_copy:
                output.path.unlink(missing_ok=True)
            output.close()
            raise

    @property
    def columns(self) -> list[NewColumn]:
        """The columns of the file."""
        with deferred():
            return [
                NewColumn(name, one.dtype, one.shape[1:], _values_of(one))
                for name, one in _columns(self._file).items()
            ]

    def write(self, batch: Mapping[str, Sequence[Any]]) -> None:
        """Append rows: the same number of values for each column.

        Raises:
            ValueError: There are more rows than the file can have.
            StorageError: The system refuses.
        """
        count = len(next(iter(batch.values())))
        if count == 0:
            return
        end = self.rows + count
        for name, values in batch.items():
            with deferred():
                self._write(self._file[name], values, end)
        self.rows = end

    def _write(self, dataset: Any, values: Sequence[Any], end: int) -> None:
        if dataset.maxshape[0] is not None and end > dataset.maxshape[0]:
            message = f"{self.path}: the file was made for at most {dataset.maxshape[0]} rows"
            raise ValueError(message)
        with translated(str(self.path)):
            dataset.resize(end, axis=0)
            _put(dataset, self.rows, _array(values, dataset))
        self._output.check()

    def finish(self) -> None:
        """Finish the file, and give it its name.

        Raises:
            StorageError: The system refuses.
        """
        with deferred(), translated(str(self.path)):
            del self._file.attrs[UNFINISHED]
            self._file.close()
        self._output.sync()
        with writing(self.path):
            if self._replaces is not None:
                self._check_unchanged(self._replaces)
                shutil.copymode(self.path, self._output.path)
                self._output.path.replace(self.path)
            else:
                publish(self._output.path, self.path)
            self.is_finished = True
            sync_folder(self.path.parent)
        self._output.close()

    def _check_unchanged(self, before: tuple[int, str, str]) -> None:
        """Refuse to replace a file that is not the one that was copied."""
        if identity(str(self.path)) != before:
            message = (
                f"{self.path}: the file was changed by others while rows were added to a copy "
                "of it; it is left alone: add the rows again"
            )
            raise StorageError(message, str(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.keep()

    @property
    def is_new(self) -> bool:
        """Whether this is a new file, rather than one that existed."""
        return self._replaces is None

    def keep(self) -> int:
        """Stop without finishing the file; return the number of rows that are kept.

        Rows of a new file are kept in `partial_path`, where `append` continues. A file that
        existed stays as it was, and none of its new rows are kept, nor are those of a file that
        could not be written.
        """
        if os.getpid() != self._process:
            return 0
        with deferred():
            return self._keep()

    def _keep(self) -> int:
        if self._file:
            with contextlib.suppress(OSError, RuntimeError, ValueError, KeyError, TypeError):
                for dataset in _columns(self._file).values():
                    dataset.resize(self.rows, axis=0)  # A batch may be there in part.
                self._file.close()
        try:
            self._output.check()
        except StorageError:
            self.rows = 0
        is_kept = self.is_new and self.rows and not self._file
        if is_kept and not self.is_finished and not self._output.is_at(self.path):
            with contextlib.suppress(FormatError, StorageError):
                _resumed(self._output, _NEW).close()  # It was whole, but did not get its name.
        if not self.is_new or self.rows == 0:
            self._output.path.unlink(missing_ok=True)
        self._output.close()
        return self.rows if self.is_new else 0


def _check_not_kept(path: Path, output: Output) -> None:
    """Refuse to put a copy in the place of rows that an earlier writer has kept."""
    try:
        with deferred(), h5py().File(output, "r") as file:
            is_kept = file.attrs.get(UNFINISHED) == _NEW
    except (OSError, RuntimeError, ValueError, KeyError):
        is_kept = False  # It is empty, or its writer was killed.
    output.seek(0)
    if is_kept:
        message = (
            f"{path}: both this file and {output.path.name}, which holds the rows of a new one, "
            "exist: move one of them away"
        )
        raise FormatError(message, str(path))


def _resumed(output: Output, mark: int) -> Any:
    """Open a file that an earlier writer has kept, or a copy of one, and mark it as such."""
    try:
        with translated(str(output.path)):
            file = h5py().File(output, "r+", libver=_VERSIONS)
            file.attrs[UNFINISHED] = mark
            return file
    except FormatError as error:
        output.check()
        message = (
            f"{output.path}: a writer that was killed left this file; it cannot be resumed: "
            "remove it to start over"
        )
        raise UnfinishedFileError(message, str(output.path)) from error


def _copy(path: Path, output: Output) -> None:
    """Copy a file to where rows are added to it."""
    output.truncate(0)
    with path.open("rb") as source:
        while piece := source.read(_PIECE):
            output.write(memoryview(piece))
    output.seek(0)
    output.check()


def _columns(file: Any) -> dict[str, Any]:
    library = h5py()
    return {
        name: one for name, one in file.items() if isinstance(one, library.Dataset) and one.shape
    }


def _values_of(dataset: Any) -> tuple[int, ...] | None:
    if SHAPE not in dataset.attrs:
        return None
    return tuple(int(length) for length in dataset.attrs[SHAPE])


def _options(
    column: NewColumn, rows_max: int | None, chunk_rows: int, compression: str | None
) -> dict[str, Any]:
    """Return how a column is laid out."""
    elements = int(np.prod(column.shape, dtype=np.int64))
    filtered = compression is not None and not column.varies
    limit = _CHUNK_BYTES_FILTERED if filtered else _CHUNK_BYTES
    rows = max(1, min(chunk_rows, limit // max(1, elements * column.dtype.itemsize)))
    rows = rows if rows_max is None else max(1, min(rows, rows_max))
    options: dict[str, Any] = {
        "shape": (0, *column.shape),
        "maxshape": (rows_max, *column.shape),
        "chunks": (rows, *(max(1, length) for length in column.shape)),
    }
    if filtered and (compression != "szip" or rows * elements >= _PIXELS):
        options |= {"compression": compression}
        options |= {"shuffle": True} if compression != "szip" and column.dtype.itemsize > 1 else {}
    return options


def _array(values: Sequence[Any], dataset: Any) -> npt.NDArray[Any]:
    """Return values as an array that h5py writes in one go."""
    shape = (len(values), *dataset.shape[1:])
    if dataset.dtype.kind != "O":
        return np.asarray(values, dataset.dtype).reshape(shape)
    array = np.empty(len(values), object)
    element = element_of(dataset.dtype)
    for k, value in enumerate(values):
        array[k] = value
    array = array.reshape(shape)
    if element in (bytes, str):
        return array
    for place, value in np.ndenumerate(array):
        array[place] = np.ascontiguousarray(value, element).reshape(-1)
    return array


def _put(dataset: Any, start: int, array: npt.NDArray[Any]) -> None:
    """Write rows from `start` on.

    Runs of numbers go to HDF5 as they are: h5py would make one array of those that are alike.
    """
    if array.dtype.kind != "O" or element_of(dataset.dtype) in (bytes, str):
        dataset[start:] = array
        return
    space = dataset.id.get_space()
    space.select_hyperslab((start, *(0 for _ in array.shape[1:])), array.shape)
    library = h5py()
    memory = library.h5s.create_simple(array.shape)
    dataset.id.write(memory, space, array, library.h5t.py_create(dataset.dtype))
