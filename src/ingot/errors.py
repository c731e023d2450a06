"""The exceptions of Ingot.

```
IngotError
+-- FormatError(ValueError)          not our file, or bytes that break the specification
|   +-- CorruptFileError             a checksum, a bound or a length does not hold
|   |   +-- UnfinishedFileError      the file does not end in a closing trailer
|   +-- UnsupportedVersionError      written by a later version of the format
+-- StorageError(OSError)            the system or the device refused a read or a write
+-- ClosedError(ValueError)          use after close
+-- WorkerError(RuntimeError)        a process that was to do a part of the work died
```

A missing file is the builtin `FileNotFoundError`, an index out of range the builtin
`IndexError`, a wrong argument `TypeError` or `ValueError`.
"""

from typing import Any


class IngotError(Exception):
    """Anything that goes wrong in Ingot and is not a plain misuse.

    Attributes:
        path: The file it went wrong in.
    """

    def __init__(self, message: str = "", path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class FormatError(IngotError, ValueError):
    """The file is not an Ingot file, or its bytes break the specification."""


class CorruptFileError(FormatError):
    """Bytes of the file are not those that were written.

    Attributes:
        record: Number of the record that cannot be read, if it is one.
        offset: Where in the file the damaged bytes begin.
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
    """The file does not end in a closing trailer: its writer is still at it, or died.

    Attributes:
        rows: Number of records that are committed; `ingot.open(path, partial=True)`
            reads them, `ingot.recover(path)` makes the file whole.
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
        supported: The newest version that can be read here.
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
        record: Number of the record that was wanted or being written, if any.
        offset: Where in the file.
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
    """The reader or writer was closed."""


class WorkerError(IngotError, RuntimeError):
    """A process that was to do a part of the work died."""
