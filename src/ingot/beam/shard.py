"""A record file that a Beam bundle writes."""

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
    """The common interface of the writers of all file formats."""

    def append(self, record: "BytesLike") -> int:
        """Write a record."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...

    def abandon(self) -> object:
        """Leave the file as it is."""
        ...


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
