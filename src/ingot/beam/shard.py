"""A record file that a bundle of Beam is writing."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ingot.beam.transfer import is_local, upload

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike


class RecordWriter(Protocol):
    """What the writers of all containers have in common."""

    def append(self, record: "BytesLike") -> int:
        """Write a record."""
        ...

    def close(self) -> None:
        """Make the file whole."""
        ...

    def abandon(self) -> object:
        """Leave the file as it is."""
        ...


class Shard:
    """A record file on its way to a path of Beam's file systems.

    On the local disk it is written where it belongs. Elsewhere it is written to a local
    temporary file, which `close` uploads. A shard that is dropped before it was closed, as
    Beam does when a bundle fails, leaves neither behind.

    Args:
        path: Where the file is wanted when the shard is closed.
        make_writer: Makes the writer of a local path, which does not exist.
        options: What `make_writer` gets besides.
        folder: Where a temporary file is made, if one is needed.
    """

    def __init__(
        self,
        path: str,
        make_writer: Callable[..., RecordWriter],
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
        """Make the file whole and bring it to its path."""
        self._writer.close()
        if self._is_local:
            self._discard.detach()
        else:
            upload(self._local, self._path)
            self._discard()


def _discard(process: int, leftovers: ExitStack) -> None:
    """Remove what a shard has left, unless this is the child of a fork."""
    if os.getpid() == process:
        leftovers.close()
