"""An HDF5 file as h5py has it, and what goes wrong with it in our words."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from ingot.errors import (
    CorruptFileError,
    FormatError,
    IngotError,
    StorageError,
    UnfinishedFileError,
)
from ingot.extras import require

_LOCKED = "unable to lock file"
_WRITTEN = "already open for write"
_CUT = re.compile(r"truncated file: eof = (\d+).*?stored_eof = (\d+)")
_FILTER = re.compile(
    r"required filter '([^']*)' is not registered|filter is not available|"
    r"can't open directory .*plugin"
)


def h5py() -> Any:
    """Return the module h5py.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    return require("h5py", "HDF5")


@contextmanager
def translated(path: str, row: int | None = None) -> Iterator[None]:
    """Have errors of HDF5 be those of Ingot, with the file and the row that was wanted."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except IngotError:
        raise
    except OSError as error:
        raise _of_system(path, row, error) from error
    except (RuntimeError, KeyError, ValueError, TypeError, OverflowError) as error:
        message = f"{path}: {_row(row)}HDF5 cannot read this: {_text(error)}"
        raise CorruptFileError(message, path, row) from error


def _of_system(path: str, row: int | None, error: OSError) -> Exception:
    text = _text(error)
    if error.errno == errno.EAGAIN or _LOCKED in text:
        message = (
            f"{path}: another process has this file open for writing; close it there first. "
            "HDF5_USE_FILE_LOCKING=FALSE is for file systems that have no locks"
        )
        return StorageError(message, path, errno=errno.EAGAIN)
    if _WRITTEN in text:
        message = (
            f"{path}: the file is marked as being written: its writer is still writing, or died. "
            f"If it died, `h5clear --status {path}` removes the mark; rows may be missing then"
        )
        return UnfinishedFileError(message, path)
    if found := _CUT.search(text):
        message = f"{path}: the file is cut short: {found[1]} of {found[2]} bytes; copy it again"
        return CorruptFileError(message, path, offset=int(found[1]))
    if "file signature not found" in text:
        return FormatError(f"{path}: this is not an HDF5 file", path)
    return _of_read(path, row, error, text)


def _of_read(path: str, row: int | None, error: OSError, text: str) -> Exception:
    if found := _FILTER.search(text):
        message = (
            f"{path}: {_row(row)}this is compressed by the filter {found[1] or 'of a plugin'}, "
            "which is not installed: pip install hdf5plugin, and import hdf5plugin first"
        )
        return FormatError(message, path)
    if error.errno is not None:
        message = f"{path}: {_row(row)}read failed: {text}"
        return StorageError(message, path, row, errno=error.errno)
    return CorruptFileError(f"{path}: {_row(row)}HDF5 cannot read this: {text}", path, row)


def _row(row: int | None) -> str:
    return "" if row is None else f"record {row}: "


def _text(error: Exception) -> str:
    return str(error.args[-1] if isinstance(error, KeyError) and error.args else error)


class Handle:
    """A file that is opened for reading when it is needed, in each process anew.

    Args:
        path: The file.
        partial: Whether a file that is marked as being written is opened, too.
    """

    def __init__(self, path: str, *, partial: bool = False) -> None:
        self.path = path
        self.partial = partial
        self._file: Any = None
        self._datasets: dict[str, Any] = {}
        self._owner = (0, RLock())

    def _lock(self) -> RLock:
        """Return the lock of this process; the parent's may be held by a thread of it."""
        if self._owner[0] != os.getpid():
            self._file, self._datasets = None, {}
            self._owner = (os.getpid(), RLock())
        return self._owner[1]

    @property
    def file(self) -> Any:
        """The file, of type h5py.File.

        Raises:
            StorageError: Another process writes to it, or the system refuses.
            FormatError: It is no HDF5 file, or damaged.
        """
        with self._lock():
            if self._file is None:
                with translated(self.path):
                    self._file = self._open()
            return self._file

    @contextmanager
    def use(self, row: int | None = None) -> Iterator[Any]:
        """Yield the file, which other threads neither use nor close meanwhile.

        Its errors, with the row that was wanted, are those of Ingot.
        """
        with self._lock(), translated(self.path, row):
            yield self.file

    def _open(self) -> Any:
        library = h5py()
        try:
            return library.File(self.path, "r")
        except OSError as error:
            if not self.partial or _WRITTEN not in str(error):
                raise
            try:
                return library.File(self.path, "r", swmr=True)
            except OSError:
                raise error from None

    def dataset(self, path: str) -> Any:
        """Return a data set, which stays open, so that HDF5 keeps the chunks it has decoded."""
        found = self._datasets.get(path)
        if found is None:
            found = self._datasets[path] = self.file[path]
        return found

    def release(self) -> None:
        """Close the file until it is needed again."""
        with self._lock():
            file, self._file, self._datasets = self._file, None, {}
            if file is not None:
                file.close()
