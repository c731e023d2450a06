"""A file that HDF5 writes to through Python, so that no error is lost."""

import errno
import os
import stat
from pathlib import Path
from typing import Self

from ingot.dataset.atomic import close_own, open_own, try_lock
from ingot.errors import FormatError, StorageError


class Sink:
    """A file, locked for one writer, which remembers the first write that failed.

    HDF5 drops errors that it meets when it closes a data set, and may crash after those of a
    full disk. So it is told that all is well, and its caller asks `check`. In the child of a
    fork it leads nowhere.
    """

    def __init__(self, path: Path) -> None:
        """Open a file, which is made if there is none.

        Raises:
            StorageError: Another process is writing it, or the system refuses.
        """
        self.path = path
        self._place = 0
        self._error: OSError | None = None
        self._handle = self._open()

    def _open(self) -> int:
        while True:
            handle = open_own(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                close_own(handle)
                message = f"{self.path}: this is no regular file; move it away"
                raise FormatError(message, str(self.path))
            if not try_lock(handle):
                close_own(handle)
                message = f"{self.path}: another process is writing this file"
                raise StorageError(message, str(self.path), errno=errno.EAGAIN)
            if self._is_own(handle):
                return handle
            close_own(handle)

    def _is_own(self, handle: int) -> bool:
        """Whether the name is that of the file; a second name of a whole one is removed."""
        found = os.fstat(handle)
        if found.st_nlink > 1:
            self.path.unlink()
            return False
        try:
            return os.path.samestat(found, self.path.stat())
        except FileNotFoundError:
            return False

    def is_at(self, path: Path) -> bool:
        """Whether the file has this name, perhaps besides its own."""
        try:
            return os.path.samestat(os.fstat(self._handle), path.stat())
        except FileNotFoundError:
            return False

    def check(self) -> None:
        """Refuse to go on if a write has failed.

        Raises:
            StorageError: One has.
        """
        if self._error is not None:
            message = f"{self.path}: write failed: {self._error.strerror}"
            raise StorageError(message, str(self.path), errno=self._error.errno)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place}.get(whence)
        self._place = (os.fstat(self._handle).st_size if start is None else start) + offset
        return self._place

    def tell(self) -> int:
        """Return the place."""
        return self._place

    def read(self, size: int) -> bytes:
        """Return bytes that were written."""
        found = os.pread(self._handle, size, self._place)
        self._place += len(found)
        return found

    def readinto(self, buffer: memoryview) -> int:
        """Read bytes that were written."""
        found = os.preadv(self._handle, [buffer], self._place)
        self._place += found
        return found

    def write(self, data: memoryview) -> int:
        """Write bytes; an error is remembered."""
        rest = memoryview(data).cast("B")
        length = len(rest)
        try:
            while rest and self._error is None:
                written = os.pwrite(self._handle, rest, self._place + length - len(rest))
                rest = rest[written:]
        except OSError as error:
            self._error = error
        self._place += length
        return length

    def truncate(self, size: int | None = None) -> int:
        """Set the length; an error is remembered."""
        length = self._place if size is None else size
        try:
            os.ftruncate(self._handle, length)
        except OSError as error:
            self._error = self._error or error
        return length

    def flush(self) -> None:
        """Do nothing: all is written already."""

    def sync(self) -> None:
        """Wait until the device has the bytes.

        Raises:
            StorageError: A write has failed, or this does.
        """
        self.check()
        try:
            os.fsync(self._handle)
        except OSError as error:
            self._error = error
        self.check()

    def close(self) -> None:
        """Let others have the file. A second call does nothing."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            close_own(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.close()
