"""Files between the local disk and Beam's file systems: copies, and shards to be written."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

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


class Shard:
    """A record file that is being written to a path of Beam's file systems.

    On the local disk the file is written in place. Elsewhere it is written to a local
    temporary file, which `close` uploads. If a shard is dropped before it is closed, as Beam
    does when a bundle fails, no file remains.

    Args:
        path: The path of the file once the shard is closed.
        make_writer: Opens a writer for a local path, which does not exist.
        options: Further arguments of `make_writer`.
        folder: The folder for a temporary file, if one is needed.
    """

    def __init__(
        self,
        path: str,
        make_writer: Callable[..., Any],
        options: Mapping[str, Any],
        folder: str | None = None,
    ) -> None:
        self._path = path
        self._is_local = is_local(path)
        self._local = path
        leftovers = ExitStack()
        self._discard = weakref.finalize(self, _discard, os.getpid(), leftovers)
        if not self._is_local:
            staging = tempfile.mkdtemp(prefix="ingot-beam-", dir=folder)
            leftovers.callback(shutil.rmtree, staging)
            self._local = str(Path(staging) / "shard")
            options = {**options, "sync": False}
        leftovers.callback(Path(self._local).unlink, missing_ok=True)
        self._writer = make_writer(self._local, **options)
        leftovers.callback(self._writer.abandon)
        self.append = self._writer.append

    def close(self) -> None:
        """Finish the file and move it to its path."""
        self._writer.close()
        if self._is_local:
            self._discard.detach()
        else:
            upload(self._local, self._path)
            self._discard()


def _discard(process: int, leftovers: ExitStack) -> None:
    """Remove the leftovers of a shard, unless this is the child of a fork."""
    if os.getpid() == process:
        leftovers.close()
