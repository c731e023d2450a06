"""Which files make a data set: a small file that is replaced as a whole."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ingot.dataset import folder as folders
from ingot.errors import FormatError

NAME = "dataset.json"
VERSION = 1
_LIMIT = 2**63


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
    """All files of a data set, in order.

    Attributes:
        spec: The fields and their types.
        shards: The files.
        metadata: What the user gave.
        runs: Which groups of writers have committed.
        build: What `ingot.build` has made the data set of, if it did and nobody changed it.
    """

    spec: dict[str, str]
    shards: tuple[Shard, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    build: dict[str, Any] | None = None

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Read the manifest of a directory.

        Raises:
            FileNotFoundError: There is none.
            FormatError: It is damaged, or names files outside of the directory.
        """
        path = folder / NAME
        data = folders.load(path)
        return folders.parse(path, "the manifest of a data set", data, lambda it: cls._of(path, it))

    @classmethod
    def find(cls, folder: Path) -> "Manifest | None":
        """Read the manifest of a directory, if there is one."""
        try:
            return cls.read(folder)
        except FileNotFoundError:
            return None

    @classmethod
    def names(cls, folder: Path) -> set[str]:
        """Return the names of the files that the manifest of a directory lists, if it has one."""
        found = cls.find(folder)
        return {shard.name for shard in found.shards} if found else set()

    @classmethod
    def _of(cls, path: Path, content: dict[str, Any]) -> "Manifest":
        check_version(path, content)
        return cls(
            texts(content["spec"]),
            shards_of(content["shards"]),
            mapping(content["metadata"]),
            tuple(texts(dict(enumerate(items(content.get("runs", []))))).values()),
            None if content.get("build") is None else mapping(content["build"]),
        )

    def check(self, folder: Path, found: int, spec: Mapping[str, str]) -> None:
        """Hold the manifest of a directory against what its files have.

        Raises:
            FormatError: They have other rows or fields.
        """
        rows = sum(shard.rows for shard in self.shards)
        if found != rows or dict(spec) != self.spec:
            message = (
                f"{folder}: the manifest tells of {rows} rows of {self.spec}, but its files "
                f"have {found} of {dict(spec)}"
            )
            raise FormatError(message, str(folder))

    def commit(self, folder: Path, *, overwrite: bool, sync: bool) -> "Manifest":
        """Put these files behind those that are committed, or in their place.

        The directory must be locked. Happens at once or not at all, and twice is as good as
        once. Returns what is committed now.

        Raises:
            FormatError: Others have committed other fields.
        """
        found = Manifest.find(folder)
        merged = self
        if found is not None and overwrite:
            merged = dataclasses.replace(self, runs=_joined(found.runs, self.runs))
        elif found is not None:
            if found.spec != self.spec:
                message = f"{folder}: another writer has committed the fields {found.spec}"
                raise FormatError(message, str(folder))
            shards, runs = _joined(found.shards, self.shards), _joined(found.runs, self.runs)
            merged = Manifest(found.spec, shards, found.metadata, runs)
        folders.replace(folder / NAME, merged._text(), sync=sync)
        return merged

    def _text(self) -> str:
        content = {
            "version": VERSION,
            "spec": self.spec,
            "shards": [asdict(shard) for shard in self.shards],
            "metadata": self.metadata,
        }
        content |= {"runs": self.runs} if self.runs else {}
        content |= {"build": self.build} if self.build else {}
        return json.dumps(content, indent=1) + "\n"


def _joined(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    there = set(old)
    return (*old, *(one for one in new if one not in there))


def check_version(path: Path, content: dict[str, Any]) -> None:
    """Refuse a file that a later version has written.

    Raises:
        FormatError: It is one.
    """
    if content["version"] != VERSION:
        message = f"{path}: version {content['version']} is not known, {VERSION} is"
        raise FormatError(message, str(path))


def texts(found: Any) -> dict[Any, str]:
    """Return a dict whose values are text, or raise TypeError."""
    if not all(isinstance(one, str) for one in mapping(found).values()):
        message = "names, types and runs are text"
        raise TypeError(message)
    return dict(found)


def mapping(found: Any) -> dict[Any, Any]:
    """Return a dict, or raise TypeError."""
    if not isinstance(found, dict):
        message = f"an object, not {type(found).__name__}"
        raise TypeError(message)
    return found


def items(found: Any) -> list[Any]:
    """Return a list, or raise TypeError."""
    if not isinstance(found, list):
        message = f"a list, not {type(found).__name__}"
        raise TypeError(message)
    return found


def shards_of(found: Any) -> tuple[Shard, ...]:
    """Return the files of a list, or raise TypeError or ValueError."""
    shards = tuple(_checked(Shard(**one)) for one in items(found))
    if len({shard.name for shard in shards}) < len(shards):
        message = "it lists a file twice"
        raise ValueError(message)
    return shards


def check_name(name: Any) -> None:
    """Refuse what is not the name of a file in the same directory, by a ValueError."""
    is_name = isinstance(name, str) and Path(name).name == name and name not in ("", "..")
    if not is_name or not name.isprintable():
        message = f"{name!r} is not the name of a file in this directory"
        raise ValueError(message)


def _checked(shard: Shard) -> Shard:
    check_name(shard.name)
    for number in (shard.rows, shard.nbytes):
        if type(number) is not int or not 0 <= number < _LIMIT:
            message = f"{shard.name}: rows and bytes are numbers below 2^63, not {number!r:.40}"
            raise TypeError(message)
    return shard
