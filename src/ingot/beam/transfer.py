"""Copying files between the local disk and Beam's file systems."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.localfilesystem import LocalFileSystem

from ingot.errors import IngotError
from ingot.records.expand import StrPath

PIECE_BYTES = 1 << 20


def absolute(path: StrPath) -> str:
    """Return a path of Beam's file systems as an absolute path.

    Beam finds no file for a pattern without a folder.
    """
    plain = os.fspath(path)
    # pathlib would drop a trailing separator, which is part of a prefix.
    return plain if FileSystems.get_scheme(plain) else os.path.join(Path.cwd(), plain)  # noqa: PTH118


def is_local(path: str) -> bool:
    """Return whether `path` is a local file."""
    return isinstance(FileSystems.get_filesystem(path), LocalFileSystem)


def upload(local: str, path: str) -> None:
    """Copy a local file to `path`.

    An upload that fails may leave a partial file at `path`, so never upload to a name that
    readers look for.
    """
    with (
        Path(local).open("rb") as source,
        FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as target,
    ):
        shutil.copyfileobj(source, target, PIECE_BYTES)


@contextmanager
def local_copy(path: str) -> Iterator[str]:
    """Copy the file at `path` to the local disk for the duration of the context.

    A file that is already local is not copied. Ingot errors that leave the context name `path`
    instead of the copy.
    """
    if is_local(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="ingot-beam-") as folder:
        copy = str(Path(folder) / PurePosixPath(path).name)
        with (
            FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as source,
            Path(copy).open("wb") as target,
        ):
            shutil.copyfileobj(source, target, PIECE_BYTES)
        try:
            yield copy
        except IngotError as error:
            error.args = (str(error).replace(copy, path), *error.args[1:])
            error.path = path
            raise
