"""Unpacking a pack into a folder, and never outside of it."""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Self

import numpy as np
import numpy.typing as npt

from ingot.errors import FormatError
from ingot.packed.tree import Tree, rows, walk
from ingot.records import Reader
from ingot.records.expand import StrPath, absolute
from ingot.records.progress import Progress, reporter

_BATCH_BYTES = 64 << 20
_FILE_BYTES = 256  # The cost of an empty file in a batch.
_NAME_BYTES_MAX = 255
_BENEATH = os.O_NOFOLLOW | os.O_CLOEXEC


def unpack(
    reader: Reader, tree: Tree, target: StrPath, *, overwrite: bool, progress: Progress
) -> None:
    """Write the files of `tree` under `target`; see `PackedFolder.unpack`."""
    _check_names(tree, reader.path)
    report = reporter(progress, "unpacked", "files")
    records = np.fromiter(rows(tree), np.int64)
    absolute(target).mkdir(parents=True, exist_ok=True)
    with _Folders(target) as folders:
        if not overwrite:
            folders.require_empty()
        for prefix, name, entry in walk(tree):
            if isinstance(entry, dict):
                folders.enter(prefix + name)
        files = (prefix + name for prefix, name, entry in walk(tree) if isinstance(entry, int))
        for part in _batches(reader.lengths(records)):
            contents = reader.read(records[part])
            for done, content in enumerate(contents, part.start + 1):
                folders.write(next(files), content.data, overwrite=overwrite)
                if report is not None:
                    report(done, len(records))


def _check_names(tree: Tree, pack: str) -> None:
    for _, name, _ in walk(tree):
        try:
            fits = len(os.fsencode(name)) <= _NAME_BYTES_MAX
        except UnicodeEncodeError:
            fits = False
        if not fits:
            message = f"{pack}: {name!r} is not a valid file name here; nothing was unpacked"
            raise FormatError(message, pack)


def _batches(lengths: npt.NDArray[np.int64]) -> Iterator[slice]:
    """Yield runs of files that fit into memory together; a large file is alone."""
    ends = np.cumsum(lengths + _FILE_BYTES)
    start, before = 0, 0
    while start < len(ends):
        stop = max(start + 1, int(np.searchsorted(ends, before + _BATCH_BYTES, "right")))
        yield slice(start, stop)
        start, before = stop, int(ends[stop - 1])


class _Folders:
    """The open folders from the target down to the one being written to.

    Each is opened by its name relative to its parent, and never through a link. Whatever
    others put or move there meanwhile, nothing is written outside the target.
    """

    def __init__(self, target: StrPath) -> None:
        self._target = str(absolute(target))
        self._path = ""
        self._names: list[str] = []
        self._open = [os.open(self._target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.pop())

    def require_empty(self) -> None:
        """Raise FileExistsError if anything is in the target."""
        with os.scandir(self._open[0]) as found:
            is_empty = next(found, None) is None
        if not is_empty:
            note = "folder is not empty; pass overwrite=True to unpack into it"
            raise FileExistsError(errno.EEXIST, note, self._target)

    def enter(self, path: str) -> int:
        """Return the descriptor of the folder at `path`; create it if it is missing."""
        if path != self._path:
            wanted = path.split("/") if path else []
            while self._names != wanted[: len(self._names)]:
                self._leave()
            for name in wanted[len(self._names) :]:
                self._descend(name)
            self._path = path
        return self._open[-1]

    def write(self, path: str, content: memoryview, *, overwrite: bool) -> None:
        """Write a file; with `overwrite`, remove an existing one first."""
        above, _, name = path.rpartition("/")
        folder = self.enter(above)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BENEATH
        try:
            if overwrite:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
            file = os.open(name, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(file, "wb") as stream:
                    stream.write(content)
            except BaseException:
                os.unlink(name, dir_fd=folder)
                raise
        except OSError as error:
            error.add_note(f"while unpacking {path!r} into {self._target}")
            raise

    def _leave(self) -> None:
        os.close(self._open.pop())
        self._names.pop()

    def _descend(self, name: str) -> None:
        above = self._open[-1]
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=above)
        try:
            self._open.append(os.open(name, os.O_RDONLY | os.O_DIRECTORY | _BENEATH, dir_fd=above))
        except NotADirectoryError:
            found = "/".join([self._target, *self._names, name])
            note = "not a folder, but a folder is needed here"
            raise NotADirectoryError(errno.ENOTDIR, note, found) from None
        self._names.append(name)
