"""What files of columns have in common: pyarrow, blocks of rows, and values at paths in them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from ingot._core import identity
from ingot.codecs.limit import check_decoded
from ingot.errors import CorruptFileError, FormatError, IngotError, StorageError
from ingot.extras import require

Path: TypeAlias = tuple[str, ...]
"""The names that lead to values: a column, then parts of structs."""

_TOKENS = count()
_VIEW = 16
"""Bytes of a view: the length, then the value or where it is."""


@cache
def pyarrow(module: str = "pyarrow") -> Any:
    """Return pyarrow, or one of its modules.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    return require(module, "Parquet or Arrow")


@contextmanager
def translated(path: str, row: int | None = None) -> Iterator[None]:
    """Have errors of pyarrow be those of Ingot, with the file and the row that was wanted."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, MemoryError, IngotError):
        raise
    except NotImplementedError as error:
        message = f"{path}: pyarrow cannot read this: {error}; write the file again without it"
        raise FormatError(message, path) from error
    except OSError as error:
        if error.errno is not None:
            message = f"{path}: {_row(row)}read failed: {error}"
            raise StorageError(message, path, row, errno=error.errno) from error
        raise _corrupt(path, row, error) from error
    except (ValueError, KeyError, IndexError, TypeError, RuntimeError) as error:
        raise _corrupt(path, row, error) from error


def _corrupt(path: str, row: int | None, error: Exception) -> CorruptFileError:
    return CorruptFileError(f"{path}: {_row(row)}pyarrow cannot read this: {error}", path, row)


def _row(row: int | None) -> str:
    return "" if row is None else f"record {row}: "


def storage(kind: Any) -> Any:
    """Return the type that the values of a type of pyarrow are stored as."""
    return kind.storage_type if isinstance(kind, pyarrow().BaseExtensionType) else kind


class ColumnFile(ABC):
    """A file whose rows are in blocks; each column of a block can be read alone.

    Several threads may use it at the same time, and the children of a fork.

    Attributes:
        path: Its path.
        identity: Its size, when it was changed and which file it is, as of opening.
        schema: Its columns, of type pyarrow.Schema.
        counts: The number of rows in each block.
        is_mapped: Whether arrays are views on a mapping, which cost no memory.
    """

    is_mapped = False

    def __init__(self, path: str) -> None:
        self.path = path
        self.identity = identity(path)
        self.token = next(_TOKENS)
        self.schema: Any = None
        self.counts: Sequence[int] = ()

    @abstractmethod
    def has_nulls(self, path: Path) -> bool:
        """Return whether there may be nulls among some values, or in the structs above them."""

    @abstractmethod
    def read(self, block: int, paths: tuple[Path, ...]) -> Any:
        """Return the values at some paths in a block, as a `pyarrow.RecordBatch` of them.

        Raises:
            FormatError: The file is damaged, or was changed.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the file; a later read opens it again."""

    def check_unchanged(self) -> None:
        """Refuse a file that is not the one that was opened.

        Raises:
            FormatError: It was changed or removed.
        """
        try:
            if identity(self.path) == self.identity:
                return
        except FileNotFoundError:
            pass
        message = f"{self.path}: the file was changed or removed after it was opened: open it again"
        raise FormatError(message, self.path)


def batch_of(arrays: Sequence[Any]) -> Any:
    """Return arrays as a `pyarrow.RecordBatch`."""
    return pyarrow().RecordBatch.from_arrays(arrays, [str(k) for k in range(len(arrays))])


def values_at(array: Any, path: Path) -> Any:
    """Return values inside of structs; they are null where a struct is."""
    array = _stored(array)
    for name in path:
        index = array.type.get_field_index(name)
        array = _stored(array.flatten()[index] if array.null_count else array.field(index))
    return array


def _stored(array: Any) -> Any:
    pa = pyarrow()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    is_text = pa.types.is_string_view(array.type)
    if is_text or pa.types.is_binary_view(array.type):  # Of views, pyarrow cannot take some.
        check_decoded(_size_of_views(array))
        return array.cast(pa.large_string() if is_text else pa.large_binary())
    return array


def _size_of_views(array: Any) -> int:
    """Return how many bytes the values have; several may share memory."""
    views = np.frombuffer(array.buffers()[1], np.uint32)[:: _VIEW // 4]
    lengths = views[array.offset : array.offset + len(array)].astype(np.int64)
    is_there = array.is_valid().to_numpy(zero_copy_only=False)
    return int(lengths[is_there].sum())
