"""Which files make a data set: a small file that is replaced as a whole."""

import dataclasses
import errno
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ingot._core import Listing
from ingot.dataset import atomic
from ingot.errors import CorruptFileError, FormatError, UnsupportedVersionError, counted

NAME = "dataset.json"
VERSION = 1
_BYTES_MAX = 256 << 20
_NAME_BYTES_MAX = 255
_SHARD = re.compile(r"(?:[0-9]{5,}-)?[0-9]{6,}-[^.]+\.ingot")
_AGAIN = "copy it again, or open the other files with skip_damaged=True"


class Shard(NamedTuple):
    """One file of rows of a data set.

    Attributes:
        name: Its name in the directory.
        rows: Number of its rows, those that are deleted included.
        nbytes: Its size.
        id: The id in its header, in hexadecimal digits; manifests of before had none.
        deleted: The bitmap of its deleted rows: name, size, id, how many there are.
        columns: Files with values of other fields: name, size, id, names of the fields.
    """

    name: str
    rows: int
    nbytes: int
    id: str | None = None
    deleted: tuple[str, int, str, int] | None = None
    columns: tuple[tuple[str, int, str, tuple[str, ...]], ...] = ()

    def content(self) -> dict[str, Any]:
        """Return what JSON says of it."""
        return {name: value for name, value in self._asdict().items() if value not in (None, ())}

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
            message = f"{path}: the file is truncated: {found:,} of {self.nbytes:,} bytes; {_AGAIN}"
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
        build: What `ingot.build` made the data set of, if it did and nothing has changed it.
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
            FileNotFoundError: The directory has no manifest.
            FormatError: It is damaged, or names files outside of the directory.
        """
        listing, head = cls.load(folder)
        return dataclasses.replace(head, shards=shards_of(listing))

    @classmethod
    def load(cls, folder: Path) -> tuple[Listing, "Manifest"]:
        """Read the manifest of a directory as its list of files, and all but this list.

        Raises:
            FileNotFoundError: The directory has no manifest.
            FormatError: It is damaged, or names files outside of the directory.
        """
        path = folder / NAME
        data = atomic.load(path, _BYTES_MAX)
        with atomic.parsing(path, "the manifest of a data set"):
            listing, content = listed(data, path)
            runs, build = content.get("runs", []), content.get("build")
            head = cls(
                texts(content["spec"]),
                metadata=mapping(content["metadata"]),
                runs=tuple(texts(dict(enumerate(items(runs)))).values()),
                build=None if build is None else mapping(build),
            )
        return listing, head

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
        try:
            return set(cls.load(folder)[0].files())
        except FileNotFoundError:
            return set()

    def commit(
        self, folder: Path, found: "Manifest | None", *, overwrite: bool, sync: bool
    ) -> None:
        """Put these files behind those that are committed, or in their place.

        Happens at once or not at all, and a second call has no effect.

        Args:
            folder: The directory, which must be locked.
            found: Its manifest, as read since it was locked.
            overwrite: Whether to replace these files.
            sync: Whether to wait until it is on the storage device.

        Raises:
            FormatError: Others have committed other fields.
        """
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
        head = {"version": VERSION, "spec": self.spec, "metadata": self.metadata}
        head |= {"runs": self.runs} if self.runs else {}
        head |= {"build": self.build} if self.build else {}
        atomic.replace(folder / NAME, listing_text(head, self.shards), sync=sync)


def _joined(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    there = set(old)
    return (*old, *(one for one in new if one not in there))


def is_shard(name: str) -> bool:
    """Return whether a file has a name that writers of a directory give."""
    return _SHARD.fullmatch(name) is not None


def check_version(path: Path, content: dict[str, Any]) -> None:
    """Refuse a file that a later version has written, by an UnsupportedVersionError."""
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


def listed(data: bytes, versioned: Path | None = None) -> tuple[Listing, dict[str, Any]]:
    """Return the files that a JSON object lists, and its other members.

    Args:
        data: The object.
        versioned: The file that it is in, if it states a version.

    Raises:
        UnsupportedVersionError: A later version has written it.
        TypeError, ValueError: It is not such an object; see `atomic.parsing`.
    """
    listing, rest = Listing.parse(data)
    content = atomic.object_of(rest)
    if versioned is not None:
        check_version(versioned, content)
    if isinstance(listing, str):
        raise ValueError(listing)  # noqa: TRY004 -- it says what is wrong with the list
    return listing, content


def listing_text(head: dict[str, Any], shards: Iterable[Shard]) -> str:
    """Return a JSON object that lists files, one on each line, behind other members."""
    encode = json.JSONEncoder().encode  # Much faster than one that indents.
    lines = ",\n  ".join([encode(shard.content()) for shard in shards])
    return f'{json.dumps(head, indent=1)[:-2]},\n "shards": [\n  {lines}\n ]\n}}\n'


def shards_of(listing: Listing) -> tuple[Shard, ...]:
    """Return the files of a list."""
    return tuple([Shard(*one) for one in listing.shards()])


def check_name(name: Any) -> None:
    """Refuse what is not the name of a file in the same directory, by a ValueError."""
    is_name = isinstance(name, str) and Path(name).name == name and name not in ("", "..")
    if not is_name or not name.isprintable() or len(name.encode()) > _NAME_BYTES_MAX:
        message = f"{name!r} is not the name of a file in this directory"
        raise ValueError(message)
