"""Who writes the files of a directory, and what those have left who were killed."""

import os
import platform
import re
import secrets
import warnings
from collections.abc import Iterable
from pathlib import Path

from ingot.dataset import atomic
from ingot.dataset.manifest import Manifest
from ingot.dataset.place import Place, places
from ingot.dataset.write import journal, superseded
from ingot.dataset.write.contribution import Contribution

_NAME = re.compile(r"\.writer-([0-9a-f]{16})")
_SHARD = re.compile(r"[0-9-]+-([0-9a-f]{16})\.ingot")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Lease:
    """A living writer of a directory, as others can tell.

    It holds a lock on a file of its own, and the names of its shards end in the token that is
    in the name of that file. The lock goes with the process; the file stays if it was killed,
    and tells whoever comes next that shards with this token may be removed. Never removed is
    what is listed, what a living process writes, and what a process of another machine may be
    writing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_clean = True
        self.token = secrets.token_hex(8)
        with atomic.locked(folder):
            self._left = _sweep(folder)
            self._path = folder / f".writer-{self.token}"
            with atomic.writing(self._path):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                self._handle = atomic.open_own(self._path, flags)
                atomic.try_lock(self._handle)
                atomic.append(self._handle, self._path, f"{_machine()}\n".encode(), 0)

    def report(self) -> None:
        """Warn of unlisted files whose writer may still run elsewhere."""
        if self._left:
            warnings.warn(
                f"{self._folder}: {len(self._left)} files such as {self._left[0]} are not in the "
                "data set; their writers ran on another machine or before a restart of this one: "
                "remove them if no such writer lives",
                stacklevel=4,
            )

    def remove_unlisted(self, listed: Iterable[str] = ()) -> None:
        """Remove the shards with this token, unless the manifest lists them or they are superseded.

        Args:
            listed: Those that something else lists.
        """
        kept = {*listed, *superseded.names_in(self._folder)}
        names = _shards_of(self._folder, self.token) - kept
        self._is_clean = superseded.remove(self._folder, names)

    def release(self) -> None:
        """End; what could not be removed is left to whoever comes next.

        A second call does nothing.
        """
        if self._handle >= 0 and self._is_clean:
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
    superseded.clear(folder)
    manifest = Manifest.find(folder)
    runs = manifest.runs if manifest else ()
    listed = {shard.name for shard in manifest.shards} if manifest else set()
    parts = places(folder)
    for place in parts:
        if place.run in runs:
            superseded.remove(folder, _names_of(folder, place))
            (folder / place.name).unlink()
    dead = [
        entry
        for entry in sorted(folder.iterdir())
        if _NAME.fullmatch(entry.name) and not superseded.is_held(entry)
    ]
    if not dead:
        return []
    for place in parts:
        listed |= _names_of(folder, place) if place.run not in runs else set()
    listed |= {shard.name for shard in journal.shards_in(folder)}
    listed |= superseded.names_in(folder)
    return [name for entry in dead for name in _inherit(entry, listed)]


def _names_of(folder: Path, place: Place) -> set[str]:
    found = Contribution.find(folder, place)
    return {shard.name for shard in found.shards} if found else set()


def _shards_of(folder: Path, token: str) -> set[str]:
    found = (_SHARD.fullmatch(entry.name) for entry in folder.iterdir())
    return {name[0] for name in found if name and name[1] == token}


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
    if data.decode("ascii", "replace").split("\n")[0] != _machine():
        return sorted(names - listed)
    if superseded.remove(path.parent, names - listed):
        path.unlink()
    return []
