"""Opening what a command reads, and writing the file that it makes."""

import errno
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ingot.dataset import Dataset
from ingot.dataset.atomic import writing
from ingot.dataset.read.dataset import selection_of
from ingot.dataset.read.expression import Expression
from ingot.dataset.read.selection import Selection
from ingot.dataset.spec import SpecLike
from ingot.formats.base.content import Content, Records, Rows, content_of
from ingot.opening import open as open_any
from ingot.records import Reader
from ingot.records.indices import Numbers


@contextmanager
def content_at(
    path: str, names: Sequence[str] | None = None, *, partial: bool = False
) -> Iterator[Records | Rows]:
    """Open some fields of rows, or records.

    Raises:
        KeyError: There is no such field.
        ValueError: Records have no fields.
    """
    with open_any(path, partial=partial) as found:
        if names and isinstance(found, Reader):
            raise without_fields(path)
        yield content_of(found, names or None)


def without_fields(path: str, option: str = "--field") -> ValueError:
    """Return the error for fields of records."""
    return ValueError(f"{path}: these are records, which have no fields; leave out {option}")


def rows_where(content: Content, where: str | None, rows: range) -> Iterator[range | Numbers]:
    """Yield the numbers of those rows that meet a condition, as they are found.

    The condition may name any field, whichever of them are printed. Without one, yield all.

    Raises:
        KeyError, TypeError, ValueError: It is not a condition on these rows.
    """
    if where is None:
        yield rows
        return
    if not isinstance(content, Rows):
        raise without_fields(content.path, "--where")
    chosen = selection_of(content.dataset)
    whole = Selection(chosen.source, tuple(chosen.source.spec), chosen.rows)
    for places, truths in Expression(where).scan(whole, rows):
        yield places.start + np.flatnonzero(truths)


@contextmanager
def source_where(
    path: str, where: str | None, spec: SpecLike | None
) -> Iterator[tuple[str | Dataset, SpecLike | None]]:
    """Return what to convert, and the types of its fields: a path, or its rows that are chosen.

    Raises:
        KeyError, TypeError, ValueError: It is not a condition on these rows.
    """
    if where is None:
        yield path, spec
        return
    with open_any(path, spec=spec) as found:
        if isinstance(found, Reader):
            raise without_fields(path, "--where")
        yield found.where(where), None


def write_file(path: str, data: bytes, *, overwrite: bool) -> None:
    """Write bytes to a file, or to standard output for `-`.

    Raises:
        IsADirectoryError: It is a directory.
        FileNotFoundError: Its directory does not exist.
        FileExistsError: The file exists, and `overwrite` is not given.
    """
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a directory; name a file in it", path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the directory of this file does not exist", path)
    if os.path.lexists(target) and not overwrite:
        raise FileExistsError(errno.EEXIST, "exists; pass --overwrite to replace it", path)
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    with writing(target):
        try:
            hidden.write_bytes(data)
            hidden.replace(target)
        finally:
            hidden.unlink(missing_ok=True)
