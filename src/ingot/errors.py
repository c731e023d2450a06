"""The exceptions of Ingot.

```
IngotError
+-- FormatError(ValueError)          not an Ingot file, or bytes that break the specification
|   +-- CorruptFileError             a checksum, a bound or a length is wrong
|   |   +-- UnfinishedFileError      the file was not closed by its writer
|   +-- UnsupportedVersionError      written by a later version of the format
+-- StorageError(OSError)            the system or the device refused a read or a write
+-- ClosedError(ValueError)          use after close
+-- WorkerError(RuntimeError)        a worker process died, or a step of a loader failed
```

A missing file is the builtin `FileNotFoundError`, an index out of range the builtin
`IndexError`, a wrong argument `TypeError` or `ValueError`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "ClosedError",
    "CorruptFileError",
    "FormatError",
    "IngotError",
    "StorageError",
    "UnfinishedFileError",
    "UnsupportedVersionError",
    "WorkerError",
]


def printable(text: str, kept: str = "\n\t") -> str:
    """Return text with control characters escaped, so that a terminal does not act on them."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in kept else repr(one)[1:-1] for one in text)


class IngotError(Exception):
    """Base class of Ingot's errors.

    Attributes:
        path: The file that the error is about.
    """

    def __init__(self, message: str = "", path: str | None = None) -> None:
        super().__init__(printable(message))
        self.path = path


class FormatError(IngotError, ValueError):
    """The file is not an Ingot file, or its bytes break the specification."""


class CorruptFileError(FormatError):
    """The file contains bytes other than those that were written.

    Attributes:
        record: Number of the record that cannot be read, if it is a record.
        offset: Where the damaged bytes begin in the file.
    """

    def __init__(
        self,
        message: str = "",
        path: str | None = None,
        record: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message, path)
        self.record = record
        self.offset = offset


class UnfinishedFileError(CorruptFileError):
    """The file has no closing trailer: it is still being written, or its writer died.

    Attributes:
        rows: Number of committed records; `ingot.open(path, partial=True)` reads them,
            `ingot.recover(path)` finishes the file.
    """

    def __init__(
        self,
        message: str = "",
        path: str | None = None,
        rows: int = 0,
        offset: int | None = None,
    ) -> None:
        super().__init__(message, path, None, offset)
        self.rows = rows


class UnsupportedVersionError(FormatError):
    """The file was written by a later version of the format.

    Attributes:
        found: The version of the file.
        supported: The newest version that this Ingot can read.
    """

    def __init__(
        self, message: str = "", path: str | None = None, found: int = 0, supported: int = 0
    ) -> None:
        super().__init__(message, path)
        self.found = found
        self.supported = supported


class StorageError(IngotError, OSError):
    """The system or the device refused a read or a write.

    Attributes:
        record: Number of the record that was being read or written, if any.
        offset: The position in the file.
        errno: The error number of the system, if there is one.
    """

    def __init__(
        self,
        message: str = "",
        path: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        errno: int | None = None,
    ) -> None:
        super().__init__(message, path)
        self.record = record
        self.offset = offset
        self.errno = errno

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (*self.args, self.path, self.record, self.offset, self.errno)
        return type(self), arguments, self.__dict__


class ClosedError(IngotError, ValueError):
    """The reader or writer is closed."""


class WorkerError(IngotError, RuntimeError):
    """A worker process died, or a step of a loader failed; the cause is `__cause__`.

    Attributes:
        step: The step of the loader.
    """

    def __init__(self, message: str = "", path: str | None = None, step: int | None = None) -> None:
        super().__init__(message, path)
        self.step = step


@contextmanager
def storage_errors() -> Iterator[None]:
    """Have errors of the system be a StorageError, unless Python has a class of their own for them.

    Those are links that lead to each other, names that are too long, and failures of a device; a
    missing file stays a FileNotFoundError.
    """
    try:
        yield
    except OSError as error:
        if type(error) is not OSError:
            raise
        path = None if error.filename is None else str(error.filename)
        reason = error.strerror or str(error)
        message = reason if path is None else f"{path}: {reason}"
        raise StorageError(message, path, errno=error.errno) from error


def counted(count: int, noun: str) -> str:
    """Return a count and its noun in words, such as `1 row` or `1,000 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
