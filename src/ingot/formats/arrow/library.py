"""The library pyarrow, and what goes wrong with it in our words."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ingot.errors import CorruptFileError, FormatError, IngotError, StorageError
from ingot.extras import require


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
