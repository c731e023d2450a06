"""A directory that several processes change: its lock, and small files that appear as a whole."""

import errno
import fcntl
import json
import logging
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock, get_ident
from time import sleep
from typing import Any

from ingot.errors import FormatError, StorageError, storage_errors

_logger = logging.getLogger(__name__)

_LOCK = ".lock"
_PAUSE_S = 0.005
_TRIES = 200
_NO_LOCK = {errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOTSUP}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
_HIDDEN = re.compile(r"\.{1,2}[a-z].*\.json\.[0-9a-f]{8}")
_WRONG = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process at a time change what a directory lists.

    Where a directory cannot be locked, as on NFS, a file in it is. A thread must not call this
    inside of itself for the same directory. A line is logged once this has waited for a second.
    """
    with _opened(folder, os.O_RDONLY) as handle:
        if _lock(handle, folder):
            yield
            return
    with _opened(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW) as handle:
        _lock(handle, folder)
        yield


def is_held(path: Path) -> bool:
    """Return whether a process has the lock of a file.

    Raises:
        OSError: The file cannot be opened for writing.
    """
    with _opened(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK) as handle:
        return not try_lock(handle)


_left: dict[tuple[int, Path], int] = {}
"""The handles that a thread has open in `_opened`."""


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """Open a file for as long as its lock is needed.

    An interrupt may come just before the lock is released; the next call releases it then.
    Otherwise this process would wait for itself.
    """
    key = (get_ident(), path)
    if key in _left:
        _unlock(_left[key])
        close_own(_left.pop(key))
    handle = _left[key] = open_own(path, flags)
    try:
        yield handle
    finally:
        _unlock(handle)
        _left.pop(key, None)
        close_own(handle)


def _lock(handle: int, folder: Path) -> bool:
    """Wait for a lock; return whether there can be one."""
    try:
        for _ in range(_TRIES):
            if try_lock(handle):
                return True
            sleep(_PAUSE_S)
        _logger.warning("%s: waiting for %s, which is changing it", folder, _owner(handle))
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno in _NO_LOCK:
            return False
        raise
    return True


def _owner(handle: int) -> str:
    """Return who has the lock of a file, as far as the system tells."""
    found = os.fstat(handle)
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    locks = Path("/proc/locks").read_text().splitlines() if Path("/proc/locks").exists() else []
    for one in locks:
        _, kind, *_, process, where, _, _ = one.split()
        if (kind, where) == ("FLOCK", place):
            return f"process {process}"
    return "another process"


def try_lock(handle: int) -> bool:
    """Take the lock of an open file; return whether it was free."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_own: set[int] = set()
"""Handles whose locks are for this process alone."""
_forking = RLock()
"""Held while this process forks, so that no child gets a handle that is not in `_own` yet."""


def open_own(path: Path, flags: int) -> int:
    """Open a file for this process: in a child of it the handle leads nowhere.

    So a lock that is taken through it ends with this process, whatever its children do.

    Raises:
        StorageError: The system refuses, as for links that lead to each other.
    """
    with _forking:
        with storage_errors():
            handle = os.open(path, flags, 0o666)
        _own.add(handle)
    return handle


def close_own(handle: int) -> None:
    """Close a handle of `open_own`, and release its lock."""
    _unlock(handle)
    _own.discard(handle)
    os.close(handle)


def _unlock(handle: int) -> None:
    """Release a lock, also if a program that was just started has a copy of the handle yet."""
    with suppress(OSError):  # Some file systems have no locks.
        fcntl.flock(handle, fcntl.LOCK_UN)


def _give_up_locks() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for handle in _own:
        os.dup2(nowhere, handle, inheritable=False)
    os.close(nowhere)
    _forking.release()


os.register_at_fork(
    before=_forking.acquire,
    after_in_parent=_forking.release,
    after_in_child=_give_up_locks,
)


def make(path: Path, *, sync: bool) -> None:
    """Make a directory and those above it, if they are not there."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in missing if sync else ():
        sync_folder(one.parent)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Have errors of the system name the file that was being written."""
    try:
        yield
    except (StorageError, FileExistsError, FileNotFoundError):
        raise
    except OSError as error:
        message = f"{path}: write failed: {error.strerror or error}"
        raise StorageError(message, str(path), errno=error.errno) from error


def append(handle: int, path: Path, data: bytes, offset: int) -> None:
    """Write at the end of a file, all or nothing.

    Raises:
        StorageError: The system refuses; the file ends where it did.
    """
    with writing(path):
        if os.pwrite(handle, data, offset) < len(data):
            os.ftruncate(handle, offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def replace(path: Path, text: str, *, sync: bool) -> None:
    """Put a text in the place of a file, at once or not at all; the directory must be locked.

    Raises:
        StorageError: The system refuses; the file is as it was.
    """
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with writing(path):
        try:
            with hidden.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            hidden.replace(path)
        finally:
            hidden.unlink(missing_ok=True)
        if sync:
            sync_folder(path.parent)


def publish(partial: Path, path: Path) -> None:
    """Give a file its name, unless another file has taken it meanwhile.

    Raises:
        FileExistsError: Another file has.
    """
    try:
        path.hardlink_to(partial)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        partial.rename(path)
        return
    partial.unlink()


def remove_hidden(folder: Path) -> None:
    """Remove what processes that were killed inside of `replace` have left; needs the lock."""
    for entry in folder.iterdir():
        if _HIDDEN.fullmatch(entry.name):
            entry.unlink()


def sync_folder(folder: Path) -> None:
    """Wait until the device has the names of a directory."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load(path: Path, bytes_max: int | None = None) -> bytes:
    """Return the content of a file.

    Raises:
        FileNotFoundError: The file does not exist.
        FormatError: It is a pipe, a device or a directory, or larger than it may be.
        StorageError: The system refuses, as for links that lead to each other.
    """
    with storage_errors():
        found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        message = f"{path}: not a regular file"
        raise FormatError(message, str(path))
    if bytes_max is not None and found.st_size > bytes_max:
        message = f"{path}: {found.st_size:,} bytes, expected at most {bytes_max:,}"
        raise FormatError(message, str(path))
    return path.read_bytes()


@contextmanager
def parsing(path: Path, what: str) -> Iterator[None]:
    """Raise errors about the content of a file as one that names it.

    Raises:
        FormatError: Something is wrong.
    """
    try:
        yield
    except FormatError:
        raise
    except _WRONG as error:
        message = f"{path}: this is not {what}: {type(error).__name__}: {error}"
        raise FormatError(message, str(path)) from error


def object_of(text: str | bytes) -> dict[str, Any]:
    """Return a JSON object, or raise what `parsing` expects."""
    found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    if not isinstance(found, dict):
        message = f"expected an object, got {type(found).__name__}"
        raise TypeError(message)
    return found


def _no_number(name: str) -> float:
    message = f"{name} is not valid JSON"
    raise ValueError(message)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        message = "an object has the same name twice"
        raise ValueError(message)
    return found
