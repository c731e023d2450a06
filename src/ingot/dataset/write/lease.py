"""Who writes the files of a directory, and what those have left who were killed."""

import json
import os
import platform
import re
import secrets
import warnings
from collections.abc import Iterable
from pathlib import Path

from ingot.dataset import atomic
from ingot.dataset.manifest import Manifest, check_name, items
from ingot.dataset.write import contribution, journal
from ingot.dataset.write.contribution import Contribution
from ingot.errors import FormatError

_NAME = re.compile(r"\.writer-([0-9a-f]{16})")
_SHARD = re.compile(r"[0-9-]+-([0-9a-f]{16})\.ingot")
SUFFIX = ".ingot"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Lease:
    """A living writer of a directory, as others can tell.

    It holds a lock on a file of its own, and the names of its shards end in the token that is
    in the name of that file. The lock goes with the process; the file stays if it was killed,
    and tells whoever comes next what may be removed: shards with this token, and others that
    the writer had superseded. Never removed is what is listed, what a living process writes,
    and what a process of another machine may be writing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken: set[str] = set()
        self.token = secrets.token_hex(8)
        with atomic.locked(folder):
            self._left = _sweep(folder)
            self._path = folder / f".writer-{self.token}"
            with atomic.writing(self._path):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                self._handle = atomic.own(os.open(self._path, flags, 0o666))
                atomic.try_lock(self._handle)
                self._append(_machine())

    def report(self) -> None:
        """Warn of files that nobody lists and that may still have a writer elsewhere."""
        if self._left:
            warnings.warn(
                f"{self._folder}: {len(self._left)} files such as {self._left[0]} are not in the "
                "data set; their writers ran on another machine or before a restart of this one: "
                "remove them if no such writer lives",
                stacklevel=4,
            )

    def take_over(self, names: Iterable[str]) -> list[str]:
        """Say that files will not be listed any more, before they are not.

        If this process is killed before it removes them, whoever comes next does.
        """
        listed = list(names)
        if listed:
            self._taken |= set(listed)
            self._append(json.dumps(listed))
        return listed

    def _append(self, line: str) -> None:
        end = os.fstat(self._handle).st_size
        atomic.append(self._handle, self._path, f"{line}\n".encode(), end)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, but none that the manifest lists, whoever asks for it."""
        removed = set(names)
        remove(self._folder, removed)
        self._taken -= removed

    def remove_unlisted(self, listed: set[str]) -> None:
        """Remove the shards with this token that are not listed."""
        names = _shards_of(self._folder, self.token) - listed
        if not remove(self._folder, names):
            self._taken |= names

    def release(self) -> None:
        """End; what was taken over and not removed is left to whoever comes next.

        A second call does nothing.
        """
        if self._handle >= 0 and not self._taken:
            self._path.unlink(missing_ok=True)
        self.__del__()

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", -1), -1
        if handle >= 0:
            atomic.close_own(handle)


def _machine() -> str:
    return _BOOT.read_text().strip() if _BOOT.exists() else platform.node()


def _sweep(folder: Path) -> list[str]:
    """Remove what killed writers have left; return the shards that may still have a writer."""
    atomic.remove_hidden(folder)
    manifest = Manifest.find(folder)
    runs = manifest.runs if manifest else ()
    listed = {shard.name for shard in manifest.shards} if manifest else set()
    places = contribution.places(folder)
    for place in places:
        if place.run in runs:
            remove(folder, _names_of(folder, place))
            (folder / place.name).unlink()
    dead = [
        entry
        for entry in sorted(folder.iterdir())
        if _NAME.fullmatch(entry.name) and not _is_held(entry)
    ]
    if not dead:
        return []
    for place in places:
        listed |= _names_of(folder, place) if place.run not in runs else set()
    listed |= {shard.name for shard in journal.shards_in(folder)}
    return [name for entry in dead for name in _inherit(entry, listed)]


def _names_of(folder: Path, place: contribution.Place) -> set[str]:
    found = Contribution.find(folder, place)
    return {shard.name for shard in found.shards} if found else set()


def _shards_of(folder: Path, token: str) -> set[str]:
    found = (_SHARD.fullmatch(entry.name) for entry in folder.iterdir())
    return {name[0] for name in found if name and name[1] == token}


def _is_held(path: Path) -> bool:
    """Whether a process has the lock of a file, or that cannot be known."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, PermissionError):
        return True
    try:
        return not atomic.try_lock(handle)
    finally:
        os.close(handle)


def _inherit(path: Path, listed: set[str]) -> list[str]:
    """Remove the files of a writer that was killed; return those that may have a writer yet."""
    names = _shards_of(path.parent, path.name[-16:])
    try:
        data = atomic.load(path)
    except FileNotFoundError:  # Its writer has ended just now, and has left nothing.
        return []
    if not data and not names:  # It was killed before it could say anything.
        path.unlink()
        return []
    machine, *lines = data.decode("ascii", "replace").split("\n")
    if machine != _machine():
        return sorted(names - listed)
    try:
        for line in lines[:-1]:
            names |= atomic.parse(path, "what a writer has left", line.encode(), _superseded)
    except FormatError:  # Nobody can tell any more what it had superseded.
        return sorted({path.name} | (names - listed))
    if remove(path.parent, names - listed):
        path.unlink()
    return []


def _superseded(content: object) -> set[str]:
    for name in items(content):
        check_name(name)
    return set(items(content))


def remove(folder: Path, names: Iterable[str]) -> bool:
    """Remove record files that the manifest does not list.

    Every file of a data set that is removed is removed here: what the manifest on disk lists
    stays, whoever asks. Returns whether no process has one of the others open for writing.
    """
    free = True
    committed = Manifest.names(folder)
    for path in (folder / name for name in names if name not in committed):
        if path.suffix == SUFFIX and path.is_symlink():
            path.unlink()
        elif path.suffix == SUFFIX and path.exists():
            held = _is_held(path)
            free = free and not held
            if not held:
                path.unlink()
    return free
