"""FFRecord's errors, which derive from its own classes and from Ingot's."""

from ingot.compat.handle import refused
from ingot.errors import ClosedError, CorruptFileError, IngotError, StorageError


class PathError(IngotError, AssertionError, ValueError):
    """A path is not that of an FFRecord file; FFRecord uses an assertion."""


class MisuseError(AssertionError, ValueError):
    """An invalid argument of a PyTorch class, or a call that it does not support."""


class SampleError(CorruptFileError, RuntimeError):
    """A sample or an index is damaged."""


class SampleIndexError(IngotError, RuntimeError, IndexError):
    """There is no sample with this number."""


class ReaderClosedError(ClosedError, RuntimeError):
    """The reader is closed."""


class CountError(IngotError, RuntimeError, ValueError):
    """Fewer or more samples were written than announced."""


class WriteError(StorageError, RuntimeError):
    """The system refused to open or write a file."""


class MissingFolderError(WriteError, FileNotFoundError):
    """The folder to write to does not exist."""


def translated(error: OSError, path: str) -> WriteError:
    """Return the exception that FFRecord's users catch for an error of the system."""
    return refused(error, path, WriteError, MissingFolderError)
