"""Which files make a data set: a small file that is replaced as a whole."""

import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ingot.errors import FormatError

if sys.platform != "win32":
    import fcntl

NAME = "dataset.json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a data set.

    Attributes:
        name: Its name in the directory.
        rows: Number of its rows.
        nbytes: Its size.
    """

    name: str
    rows: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """All files of a data set, in order."""

    spec: dict[str, str]
    shards: tuple[Shard, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of a directory.

        Raises:
            FileNotFoundError: There is none.
            FormatError: It is damaged, or names files outside of the directory.
        """
        path = folder / NAME
        try:
            content = json.loads(path.read_bytes())
            if content["version"] != _VERSION:
                message = f"{path}: version {content['version']} is not known, {_VERSION} is"
                raise FormatError(message, str(path))
            shards = tuple(Shard(**one) for one in content["shards"])
            if len({shard.name for shard in shards}) < len(shards):
                message = "it lists a file twice"
                raise ValueError(message)  # noqa: TRY301 -- all that is wrong is told below
            return cls(_texts(content["spec"]), tuple(map(_checked, shards)), content["metadata"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            message = f"{path}: this is not the manifest of a data set: {error}"
            raise FormatError(message, str(path)) from error

    def commit(self, folder: Path, known: int, *, sync: bool) -> "Manifest":
        """Take the place of the manifest of a directory, at once or not at all.

        Shards behind the first `known` ones are new; what others have committed since those
        were read stays, in front of the new ones. Returns what is committed now.

        Raises:
            FormatError: Others have committed other fields.
        """
        with _locked(folder):
            merged = self
            if (folder / NAME).exists():
                found = Manifest.read(folder)
                if found.spec != self.spec:
                    message = f"{folder}: another writer has committed the fields {found.spec}"
                    raise FormatError(message, str(folder))
                merged = Manifest(self.spec, (*found.shards, *self.shards[known:]), found.metadata)
            merged._replace(folder, sync=sync)
        return merged

    def _replace(self, folder: Path, *, sync: bool) -> None:
        content = {
            "version": _VERSION,
            "spec": self.spec,
            "shards": [asdict(shard) for shard in self.shards],
            "metadata": self.metadata,
        }
        hidden = folder / f".{NAME}.{secrets.token_hex(4)}"
        try:
            with hidden.open("x") as file:
                json.dump(content, file, indent=1)
                file.write("\n")
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            hidden.replace(folder / NAME)
        finally:
            hidden.unlink(missing_ok=True)
        if sync:
            _sync(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time change the manifest of a directory."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _texts(spec: dict[str, Any]) -> dict[str, str]:
    if not all(isinstance(kind, str) for kind in spec.values()):
        message = "types are text"
        raise TypeError(message)
    return dict(spec)


def _checked(shard: Shard) -> Shard:
    name = shard.name
    if not isinstance(name, str) or Path(name).name != name or name in ("", ".", ".."):
        message = f"{name!r} is not the name of a file in this directory"
        raise ValueError(message)
    if not name.isprintable():
        message = f"{name!r} is not the name of a file"
        raise ValueError(message)
    if type(shard.rows) is not int or type(shard.nbytes) is not int or shard.rows < 0:
        message = f"{name}: rows and bytes are numbers"
        raise TypeError(message)
    return shard
