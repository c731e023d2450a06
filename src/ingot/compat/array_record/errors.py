"""ArrayRecord's errors, which derive from its own classes and from Ingot's."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from ingot.errors import ClosedError, CorruptFileError, FormatError, IngotError, StorageError

Caught: TypeAlias = FormatError | OSError | IndexError | ClosedError

CAUGHT = (FormatError, OSError, IndexError, ClosedError)
"""Errors that are translated to one of the errors below."""

_LEAST_BYTES = 64 << 10
_NOTES = {
    ": postscript: ": "Failed to read RiegeliPostscript",
    "of ArrayRecord is not known": "Unrecognized version number",
}
"""ArrayRecord's words for errors that contain these words."""


class DamagedFileError(CorruptFileError, RuntimeError):
    """The file is damaged or truncated."""


class ForeignFileError(FormatError, RuntimeError):
    """The file is not a record file."""


class OpenError(StorageError, RuntimeError):
    """The system refused to open, read or write the file."""


class MissingFileError(OpenError, FileNotFoundError):
    """There is no such file."""


class ObjectClosedError(ClosedError, RuntimeError):
    """The reader or writer is closed."""


class RecordIndexError(IngotError, RuntimeError):
    """The file has no record with this number."""


class RecordKeyError(IngotError, ValueError):
    """The data source has no record with this number."""


def translated(error: Caught, path: str) -> Exception:
    """Return the exception that ArrayRecord's users catch for an error of a file."""
    if isinstance(error, CorruptFileError):
        place = f"offset {error.offset}: "
        message = str(error).replace(place, f"{place}Corrupted Riegeli/records file: ", 1)
        notes = [note for words, note in _NOTES.items() if words in message]
        message = "; ".join([message, *notes]) + _shortage(path)
        return DamagedFileError(message, error.path, error.record, error.offset)
    if isinstance(error, FormatError):
        message = f"{error}, nor that of ArrayRecord{_shortage(path)}"
        return ForeignFileError(message, error.path)
    if isinstance(error, ClosedError):
        return ObjectClosedError(f"{path}: Object closed", path)
    if isinstance(error, StorageError):
        return OpenError(str(error), error.path, error.record, error.offset, error.errno)
    if isinstance(error, OSError):
        number = errno.ENOENT if error.errno is None else error.errno
        kind = MissingFileError if number == errno.ENOENT else OpenError
        message = f"open() failed: {os.strerror(number)}; opening {path}"
        return kind(message, path, errno=number)
    return RecordIndexError(str(error), path)


def _shortage(path: str) -> str:
    with suppress(OSError):
        if Path(path).stat().st_size < _LEAST_BYTES:
            return "; ArrayRecord file should be at least 64KB big"
    return ""
