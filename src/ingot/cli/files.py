"""Opening what a command reads, and writing the file that it makes."""

import errno
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ingot.dataset.atomic import writing
from ingot.formats.base.content import Records, Rows, content_of
from ingot.opening import open as open_any
from ingot.records import Reader


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


def without_fields(path: str) -> ValueError:
    """Return the error for fields of records."""
    return ValueError(f"{path}: these are records, which have no fields; leave out --field")


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
