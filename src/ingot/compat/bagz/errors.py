"""Bagz's errors, which derive from its own classes and from Ingot's."""

from ingot.errors import StorageError


class OpenError(StorageError, ValueError):
    """The system refused to open or write a file."""


class MissingFolderError(OpenError, FileNotFoundError):
    """The folder to write to does not exist."""


def translated(error: OSError, path: str) -> OpenError:
    """Return the exception that Bagz's users catch for an error of the system."""
    kind = MissingFolderError if isinstance(error, FileNotFoundError) else OpenError
    record, offset = getattr(error, "record", None), getattr(error, "offset", None)
    return kind(str(error), path, record, offset, error.errno)
