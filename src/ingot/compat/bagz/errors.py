"""Bagz's errors: of the same classes as its own, and of Ingot's."""

from ingot.errors import StorageError


class OpenError(StorageError, ValueError):
    """The system refused to open or to write a file."""


class MissingFolderError(OpenError, FileNotFoundError):
    """There is no such folder to write to."""


def translated(error: OSError, path: str) -> OpenError:
    """Return what Bagz's users catch for an error of the system."""
    kind = MissingFolderError if isinstance(error, FileNotFoundError) else OpenError
    record, offset = getattr(error, "record", None), getattr(error, "offset", None)
    return kind(str(error), path, record, offset, error.errno)
