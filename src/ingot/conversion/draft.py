"""The place of a target that is not finished: a hidden folder beside it, locked by one process."""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Self

from ingot._core import exchange
from ingot.dataset.atomic import close_own, make, open_own, publish, sync_folder, try_lock, writing
from ingot.dataset.manifest import NAME, is_shard
from ingot.formats.table import FORMATS

_LOCK = "lock"
_NEW = "new"
_OLD = "old"


class Draft:
    """A target on its way: it gets its name when it is finished and checked.

    Args:
        target: Where it will be.

    Attributes:
        path: Where it is until then. The name is the same, so that its suffix tells its format.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._folder = target.with_name(f".{target.name}.converting")
        self.path = self._folder / target.name
        self._is_published = False
        self._handle: int | None = None

    def _lock(self) -> None:
        while True:
            with writing(self._target):
                self._folder.mkdir(exist_ok=True)
            if self._folder.is_symlink():
                note = "is a link, but the target is made here: remove it"
                raise FileExistsError(errno.EEXIST, note, str(self._folder))
            with suppress(FileNotFoundError):
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
                handle = open_own(self._folder / _LOCK, flags)
                self._handle = handle
                if not try_lock(handle):
                    self._unlock()
                    message = f"{self._target}: another process is converting to this target"
                    raise BlockingIOError(errno.EAGAIN, message)
                # The process that had the lock may have removed its file.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(handle), (self._folder / _LOCK).stat()):
                        return
                self._unlock()

    def _unlock(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            close_own(handle)

    def _restore(self) -> None:
        """Remove what an exchange has left, and put back what was moved away.

        What was moved away stays where it is if something else has taken its place.
        """
        if os.path.lexists(self._folder / _NEW):
            _remove(self._folder / _NEW)
        old = self._folder / _OLD
        if os.path.lexists(old) and not os.path.lexists(self._target):
            old.rename(self._target)

    @property
    def is_begun(self) -> bool:
        """Whether an earlier conversion has left something here."""
        return os.path.lexists(self.path)

    def clear(self) -> None:
        """Remove what an earlier conversion has left."""
        for entry in self._folder.iterdir():
            if entry.name != _LOCK:
                _remove(entry)

    def publish(self, *, overwrite: bool, sync: bool) -> None:
        """Give the target its name.

        Raises:
            FileExistsError: Another process has taken the name, or it may not be replaced.
        """
        check_target(self._target, overwrite=overwrite)
        with writing(self._target):
            for one in [self.path, *self.path.rglob("*")] if sync else ():
                if one == self.path or one.is_file():
                    sync_folder(one)  # Which syncs files, too.
            has_folder = self._target.is_dir() or self.path.is_dir()
            if overwrite and has_folder and os.path.lexists(self._target):
                self._exchange()
            else:
                self._rename(overwrite=overwrite)
            self._is_published = True
            if sync:
                sync_folder(self._target.parent)

    def _exchange(self) -> None:
        """Put the new target in the place of the old one, in one step.

        The new one gets another name before: what this leaves in the folder is never taken for
        an unfinished target. A file system that cannot exchange names takes two steps, and
        `_restore` undoes the first.
        """
        new = self._folder / _NEW
        self.path.rename(new)
        if not exchange(new, self._target):
            new.rename(self.path)
            self._target.rename(self._folder / _OLD)
            self._rename(overwrite=True)

    def _rename(self, *, overwrite: bool) -> None:
        try:
            if self.path.is_dir():
                self.path.rename(self._target)
            elif overwrite:
                self.path.replace(self._target)
            else:
                publish(self.path, self._target)
        except OSError as error:
            if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                raise _taken(self._target) from None
            raise

    def remove(self) -> None:
        """Remove the folder and all in it, except what was moved away and not replaced."""
        self._restore()
        if self._is_published or not os.path.lexists(self._folder / _OLD):
            shutil.rmtree(self._folder, ignore_errors=True)
        else:
            _remove(self.path)

    def __enter__(self) -> Self:
        """Make the folder, which no other process has.

        Raises:
            BlockingIOError: Another process is converting to this target.
        """
        make(self._target.parent, sync=False)
        try:
            self._lock()
            self._restore()
            return self  # noqa: TRY300 -- an interrupt may come before it
        except KeyboardInterrupt:
            self._withdraw()
            raise

    def _withdraw(self) -> None:
        """Leave the folder as it was found, wherever the way into it was interrupted."""
        self._unlock()
        with suppress(OSError):
            self._lock()
            if {entry.name for entry in self._folder.iterdir()} <= {_LOCK}:
                self.remove()
        self._unlock()

    def __exit__(self, *_: object) -> None:
        self._unlock()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse a target that exists, unless it may be replaced.

    Raises:
        FileExistsError: There is one, and `overwrite` is not given, or it is a directory that
            holds other files than those of a data set.
    """
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise _taken(target)
    other = _foreign(target) if target.is_dir() else None
    if other is not None:
        name = other.name
        note = f"holds files that are not part of a data set, such as {name}; choose another target"
        raise FileExistsError(errno.EEXIST, note, str(target))


def _taken(target: Path) -> FileExistsError:
    """Return the error for a target that exists."""
    note = "exists; pass overwrite=True to replace it once the new one is finished"
    return FileExistsError(errno.EEXIST, note, str(target))


def _foreign(folder: Path) -> Path | None:
    """Return a file that is not of a data set; hidden ones are of its writers."""
    files = [one for one in folder.rglob("*") if not one.is_dir() and one.name[0] != "."]
    for known in FORMATS:
        marks = (folder / mark for mark in known.marks if mark[0] != ".")
        if known.parts and any(mark.is_file() for mark in marks):
            return next((one for one in files if one.suffix not in known.parts), None)
    is_own = (folder / NAME).is_file()
    for one in files:
        if not (is_own and one.parent == folder and (one.name == NAME or is_shard(one.name))):
            return one
    return None
