"""A file that HDF5 writes to through methods of ours, so that no error is lost."""

import errno
import os
import stat
from pathlib import Path
from typing import Self

from ingot._core import Sink as NativeSink
from ingot.dataset.atomic import close_own, open_own, try_lock
from ingot.errors import FormatError, StorageError


class Output(NativeSink):
    """A file, locked for one writer, which remembers the first write that failed.

    HDF5 drops errors that it meets when it closes a data set, and may crash after those of its
    callbacks. So these report success, and its caller calls `check`. The methods that it
    calls are native: an interrupt is raised when HDF5 has returned, never in the middle of it.
    In the child of a fork it leads nowhere.
    """

    path: Path
    _handle: int

    def __new__(cls, path: Path) -> Self:
        """Open a file, or create it.

        Raises:
            StorageError: Another process is writing it, or the system refuses.
        """
        found, handle = None, -1
        try:
            handle = _opened(path)
            found = super().__new__(cls, f"/dev/fd/{handle}")
            found.path, found._handle = path, handle
        except BaseException:
            if handle >= 0 and not hasattr(found, "_handle"):
                close_own(handle)
            raise
        return found

    def is_at(self, path: Path) -> bool:
        """Whether the file has this name, perhaps in addition to its own."""
        try:
            return os.path.samestat(os.fstat(self._handle), path.stat())
        except FileNotFoundError:
            return False

    def check(self) -> None:
        """Raise the first error of a write.

        Raises:
            StorageError: A write has failed.
        """
        if self.failure is not None:
            code, text = self.failure
            message = f"{self.path}: write failed: {os.strerror(code) if code else text}"
            raise StorageError(message, str(self.path), errno=code or None)

    def sync(self) -> None:
        """Wait until the device has the bytes.

        Raises:
            StorageError: A write has failed, or this does.
        """
        self.check()
        super().sync()
        self.check()

    def close(self) -> None:
        """Let others have the file. A second call does nothing."""
        self.detach()
        if self._handle >= 0:  # One line: an interrupt in between would leave the lock.
            _, self._handle = close_own(self._handle), -1  # type: ignore[func-returns-value]

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.close()


def _opened(path: Path) -> int:
    """Return a handle that has the lock of the file at a path."""
    while True:
        handle = open_own(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        try:
            _lock(path, handle)
            if _is_own(path, handle):
                return handle
        except BaseException:
            close_own(handle)
            raise
        close_own(handle)


def _lock(path: Path, handle: int) -> None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        message = f"{path}: not a regular file; move it away"
        raise FormatError(message, str(path))
    if not try_lock(handle):
        message = f"{path}: another process is writing this file"
        raise StorageError(message, str(path), errno=errno.EAGAIN)


def _is_own(path: Path, handle: int) -> bool:
    """Whether the name is that of the file; a second name of a whole one is removed."""
    found = os.fstat(handle)
    if found.st_nlink > 1:
        path.unlink()
        return False
    try:
        return os.path.samestat(found, path.stat())
    except FileNotFoundError:
        return False
