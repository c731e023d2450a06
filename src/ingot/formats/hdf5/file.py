"""An HDF5 file: where it is, h5py's handle of it, its attributes, and its errors."""

import errno
import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from ingot.errors import (
    CorruptFileError,
    FormatError,
    IngotError,
    StorageError,
    UnfinishedFileError,
)
from ingot.extras import require
from ingot.formats.table import SUFFIXES, format_named

SHAPE = "ingot.shape"
"""The attribute with the shape that flat values of a column have, -1 for the length that varies."""

UNFINISHED = "ingot.unfinished"
"""The attribute that a file has while it is being written."""

_OWN = "ingot."
_FORMAT = format_named("hdf5")
_STARTS = (0, *(512 << k for k in range(12)))
"""Where HDF5 is looked for: in front of it may be a block of the user's."""

_LOCKED = "unable to lock file"
_WRITTEN = "already open for write"
_CUT = re.compile(r"truncated file: eof = (\d+).*?stored_eof = (\d+)")
_FILTER = re.compile(
    r"required filter '([^']*)' is not registered|filter is not available|"
    r"can't open directory .*plugin"
)


class Location(NamedTuple):
    """A place in an HDF5 file.

    Attributes:
        file: The absolute path of the file.
        inside: The path of a group or a data set in it; empty for the whole file.
    """

    file: str
    inside: str = ""

    def __str__(self) -> str:
        return f"{self.file}/{self.inside}" if self.inside else self.file


def locate(path: str) -> Location | None:
    """Return the place that an absolute path leads to; None if it is not in an HDF5 file."""
    whole = Path(path)
    file = next((one for one in (whole, *whole.parents) if one.exists()), whole)
    if not _is_hdf5(file):
        return None
    return Location(path) if file == whole else Location(str(file), str(whole.relative_to(file)))


def _is_hdf5(file: Path) -> bool:
    """Return whether a file has the name of an HDF5 file, or begins like one."""
    if not file.is_file():
        return False
    if file.suffix.lower() in _FORMAT.suffixes:
        return True
    if file.suffix.lower() in SUFFIXES:
        return False
    with file.open("rb") as opened:
        for start in _STARTS:
            opened.seek(start)
            if opened.read(len(_FORMAT.signature)) == _FORMAT.signature:
                return True
    return False


def h5py() -> Any:
    """Return the module h5py."""
    return require("h5py", "HDF5")


@contextmanager
def translated(path: str, row: int | None = None) -> Iterator[None]:
    """Raise errors of HDF5 as those of Ingot, with the file and the row that was wanted."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except IngotError:
        raise
    except OSError as error:
        raise _error_of(path, row, error) from error
    except (RuntimeError, KeyError, ValueError, TypeError, OverflowError) as error:
        message = f"{path}: {_row(row)}HDF5 cannot read this: {_text(error)}"
        raise CorruptFileError(message, path, row) from error


def _error_of(path: str, row: int | None, error: OSError) -> Exception:  # noqa: PLR0911
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
        message = f"{path}: the file is truncated: {found[1]} of {found[2]} bytes; copy it again"
        return CorruptFileError(message, path, offset=int(found[1]))
    if "file signature not found" in text:
        return FormatError(f"{path}: this is not an HDF5 file", path)
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
    """A file that is opened for reading when it is needed, by each process for itself.

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
            FormatError: It is not an HDF5 file, or damaged.
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


def metadata_of(file: Any, root: Any, paths: Iterable[str]) -> dict[str, Any]:
    """Return attributes: those of the root by their names, those of others as `path@name`.

    Others are the data sets at `paths`, and the groups that these are in.
    """
    found = _plain(root)
    parts = (path.split("/") for path in paths)
    steps = {"/".join(names[:k]) for names in parts for k in range(1, len(names) + 1)}
    for path in sorted(steps):
        one = file[path]
        if one != root:
            found |= {f"{path}@{key}": value for key, value in _plain(one).items()}
    return found


def _plain(one: Any) -> dict[str, Any]:
    found = {}
    for name in one.attrs:
        if isinstance(name, str) and not name.startswith(_OWN):
            value, is_plain = _value(_read(one, name))
            if is_plain:
                found[_legible(name)] = value
    return found


def _read(one: Any, name: str) -> Any:
    """Return an attribute; an object if it is of a type that numpy lacks."""
    try:
        return one.attrs[name]
    except (TypeError, ValueError):
        return object()


def _legible(value: str) -> str:
    """Return text with bytes that are not Unicode spelled out."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _value(value: Any) -> tuple[Any, bool]:
    """Return a value as JSON has it, and whether that can be."""
    if isinstance(value, h5py().Empty):
        return None, True
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        each = [_value(one) for one in value]
        return [one for one, _ in each], all(is_plain for _, is_plain in each)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace"), True
    if isinstance(value, str):
        return _legible(value), True
    if isinstance(value, float) and not math.isfinite(value):
        return str(value), True  # JSON has no such numbers.
    return value, isinstance(value, int | float | bool)
