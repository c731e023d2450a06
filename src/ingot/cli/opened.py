"""Opening what a command looks at."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ingot.dataset import Dataset
from ingot.formats.base.content import Records, Rows, content_of
from ingot.opening import open as open_any
from ingot.records import Reader


@contextmanager
def opened(path: str, *, partial: bool = False) -> Iterator[Reader | Dataset]:
    """Open records or rows."""
    found = open_any(path, partial=partial)
    try:
        yield found
    finally:
        found.close()


@contextmanager
def content(
    path: str, names: Sequence[str] | None = None, *, partial: bool = False
) -> Iterator[Records | Rows]:
    """Open some fields of rows, or records.

    Raises:
        KeyError: There is no such field.
        ValueError: Records have no fields.
    """
    with opened(path, partial=partial) as found:
        if names and isinstance(found, Reader):
            raise without_fields(path)
        yield content_of(found, names or None)


def without_fields(path: str) -> ValueError:
    """Return the error for fields of records."""
    return ValueError(f"{path}: these are records, which have no fields; leave out --field")
