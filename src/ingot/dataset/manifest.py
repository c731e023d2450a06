"""Which files make a data set: a small file that is replaced as a whole."""

import dataclasses
import errno
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ingot.dataset import atomic
from ingot.errors import CorruptFileError, FormatError, UnsupportedVersionError, counted

NAME = "dataset.json"
VERSION = 1
_LIMIT = 2**63
_BYTES_MAX = 256 << 20
_NAME_BYTES_MAX = 255
_ID = re.compile("[0-9a-f]{32}")
_SHARD = re.compile(r"(?:[0-9]{5,}-)?[0-9]{6,}-[^.]+\.ingot")
_AGAIN = "copy it again, or open the other files with skip_damaged=True"


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a data set.

    Attributes:
        name: Its name in the directory.
        rows: Number of its rows.
        nbytes: Its size.
        id: The id in its header, in hexadecimal digits; manifests of before had none.
    """

    name: str
    rows: int
    nbytes: int
    id: str | None = None

    def content(self) -> dict[str, Any]:
        """Return what JSON says of it."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def check(self, folder: Path) -> None:
        """Compare the size of the file with the manifest.

        Raises:
            FileNotFoundError: There is no such file.
            CorruptFileError: It has another size.
        """
        path = folder / self.name
        found = path.stat().st_size if path.exists() else None
        if found != self.nbytes:
            raise self.misfit(folder, found)

    def misfit(self, folder: Path, found: int | None) -> FileNotFoundError | CorruptFileError:
        """Return the error for a file that has `found` bytes, or does not exist."""
        path = folder / self.name
        if found is None:
            what = f"{self.nbytes:,} bytes with {counted(self.rows, 'row')}"
            message = f"this file of the data set is missing, {what}; {_AGAIN}"
            return FileNotFoundError(errno.ENOENT, message, str(path))
        if found < self.nbytes:
            message = f"{path}: the file is cut short: {found:,} of {self.nbytes:,} bytes; {_AGAIN}"
            return CorruptFileError(message, str(path), offset=found)
        message = f"{path}: another file is in its place: {found:,} bytes, not {self.nbytes:,}"
        return CorruptFileError(message, str(path), offset=self.nbytes)


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
        return cls.parse(folder, cls.load(folder))

    @staticmethod
    def load(folder: Path) -> bytes:
        """Return the manifest of a directory as it is stored.

        Raises:
            FileNotFoundError: There is none.
            FormatError: It is not a regular file, or too large.
        """
        return atomic.load(folder / NAME, _BYTES_MAX)

    @classmethod
    def parse(cls, folder: Path, data: bytes) -> "Manifest":
        """Return the manifest that a directory stores as `data`.

        Raises:
            FormatError: It is damaged, or names files outside of the directory.
        """
        path = folder / NAME
        return atomic.parse(path, "the manifest of a data set", data, lambda it: cls._of(path, it))

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
        merged.replace(folder, sync=sync)
        return merged

    def has(self, run: Sequence[Shard]) -> bool:
        """Return whether it lists these files, which follow each other."""
        at = self._place(run)
        return self.shards[at : at + len(run)] == tuple(run)

    def _place(self, run: Sequence[Shard]) -> int:
        return self.shards.index(run[0]) if run[0] in self.shards else 0

    def exchange(
        self, folder: Path, old: Sequence[Shard], new: Sequence[Shard], *, sync: bool
    ) -> None:
        """Put files in the place of consecutive others, which are listed.

        The directory must be locked since this was read. Happens at once or not at all.
        """
        at = self._place(old)
        shards = (*self.shards[:at], *new, *self.shards[at + len(old) :])
        dataclasses.replace(self, shards=shards).replace(folder, sync=sync)

    def replace(self, folder: Path, *, sync: bool) -> None:
        """Take the place of the manifest of a directory, which must be locked."""
        content = {
            "version": VERSION,
            "spec": self.spec,
            "shards": [shard.content() for shard in self.shards],
            "metadata": self.metadata,
        }
        content |= {"runs": self.runs} if self.runs else {}
        content |= {"build": self.build} if self.build else {}
        atomic.replace(folder / NAME, json.dumps(content, indent=1) + "\n", sync=sync)


def _joined(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    there = set(old)
    return (*old, *(one for one in new if one not in there))


def is_shard(name: str) -> bool:
    """Return whether a file has a name that writers of a directory give."""
    return _SHARD.fullmatch(name) is not None


def check_version(path: Path, content: dict[str, Any]) -> None:
    """Refuse a file that a later version has written.

    Raises:
        UnsupportedVersionError: It is one.
    """
    found = content["version"]
    if type(found) is not int or found < 1:
        message = f"the version is a positive integer, got {found!r:.50}"
        raise TypeError(message)
    if found > VERSION:
        message = f"{path}: unsupported version {found} (this release reads {VERSION})"
        raise UnsupportedVersionError(message, str(path), found, VERSION)


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
    if not is_name or not name.isprintable() or len(name.encode()) > _NAME_BYTES_MAX:
        message = f"{name!r} is not the name of a file in this directory"
        raise ValueError(message)


def _checked(shard: Shard) -> Shard:
    check_name(shard.name)
    if shard.id is not None and not (isinstance(shard.id, str) and _ID.fullmatch(shard.id)):
        message = f"{shard.name}: an id is 32 hexadecimal digits, not {shard.id!r:.40}"
        raise TypeError(message)
    for number in (shard.rows, shard.nbytes):
        if type(number) is not int or not 0 <= number < _LIMIT:
            message = f"{shard.name}: rows and bytes are numbers below 2^63, not {number!r:.40}"
            raise TypeError(message)
    return shard
