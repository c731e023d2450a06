"""Which files make a data set: a small file that is replaced as a whole."""

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ingot.errors import FormatError

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
            return cls(_texts(content["spec"]), tuple(map(_checked, shards)), content["metadata"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            message = f"{path}: this is not the manifest of a data set: {error}"
            raise FormatError(message, str(path)) from error

    def write(self, folder: Path, *, sync: bool) -> None:
        """Take the place of the manifest of a directory, at once or not at all."""
        content = {
            "version": _VERSION,
            "spec": self.spec,
            "shards": [asdict(shard) for shard in self.shards],
            "metadata": self.metadata,
        }
        hidden = folder / f".{NAME}.{secrets.token_hex(4)}"
        with hidden.open("x") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
            file.flush()
            if sync:
                os.fsync(file.fileno())
        hidden.replace(folder / NAME)
        if sync:
            _sync(folder)


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
    if not isinstance(shard.rows, int) or not isinstance(shard.nbytes, int) or shard.rows < 0:
        message = f"{name}: rows and bytes are numbers"
        raise TypeError(message)
    return shard
