"""What the readers and writers of all packages share: closing, pickling, errors and their words."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeVar

from ingot.errors import StorageError

Refused = TypeVar("Refused", bound=StorageError)


class Closing:
    """Closes at the end of a `with` block, whatever ends it."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Reopening:
    """Pickles all attributes, also those of a subclass, but what `_open` makes again.

    Attributes:
        OPENED: The names of what it makes.
    """

    OPENED: ClassVar[tuple[str, ...]]

    @abstractmethod
    def _open(self) -> None: ...

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self.OPENED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()


@contextmanager
def translation(
    caught: type[Exception] | tuple[type[Exception], ...],
    translated: Callable[..., Exception],
    *arguments: object,
) -> Iterator[None]:
    """Raise `translated(error, *arguments)` in place of an error to catch.

    Where records are read or written one by one, a `try` costs less.
    """
    try:
        yield
    except caught as error:
        raise translated(error, *arguments) from error


def refused(error: OSError, path: str, kind: type[Refused], missing: type[Refused]) -> Refused:
    """Return an error of the system as one of two classes; the second if a folder is missing."""
    record, offset = getattr(error, "record", None), getattr(error, "offset", None)
    chosen = missing if isinstance(error, FileNotFoundError) else kind
    return chosen(str(error), path, record, offset, error.errno)


def subject(count: int, noun: str) -> str:
    """Return a count with its noun and verb, such as `1 row is` or `1,000 rows are`."""
    return f"1 {noun} is" if count == 1 else f"{count:,} {noun}s are"
