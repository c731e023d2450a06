"""FFRecord's errors: of the same classes as its own, and of Ingot's."""

from ingot.errors import ClosedError, CorruptFileError, IngotError


class PathError(IngotError, AssertionError, ValueError):
    """A path is not that of an FFRecord file. FFRecord asserts."""


class SampleError(CorruptFileError, RuntimeError):
    """A sample or an index is damaged."""


class SampleIndexError(IngotError, RuntimeError, IndexError):
    """There is no sample of this number."""


class ReaderClosedError(ClosedError, RuntimeError):
    """The reader was closed."""


class CountError(IngotError, RuntimeError, ValueError):
    """Fewer or more samples were written than announced."""
