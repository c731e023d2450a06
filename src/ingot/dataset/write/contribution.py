"""The finished part of one of several writers of a data set, until all have finished."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingot.dataset import atomic
from ingot.dataset.manifest import (
    VERSION,
    Manifest,
    Shard,
    listed,
    listing_text,
    mapping,
    shards_of,
    texts,
)
from ingot.dataset.place import Place, group, places
from ingot.errors import FormatError

_TOTAL_MAX = 99_999
_RUN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def check_shard(shard: Any) -> tuple[int, int]:
    """Return the number of a writer and the number of writers.

    Raises:
        TypeError: It is not a pair of integers.
        ValueError: The number is out of range.
    """
    is_pair = isinstance(shard, tuple | list) and len(shard) == 2  # noqa: PLR2004
    if not is_pair or not all(type(one) is int for one in shard):
        message = f"shard must be (number, total), such as (0, 8), got {shard!r}"
        raise TypeError(message)
    number, total = shard
    if not 0 <= number < total:
        message = f"shard {number} of {total}: shards are numbered from 0 to {total - 1}"
        raise ValueError(message)
    if total > _TOTAL_MAX:
        message = f"a data set can have at most {_TOTAL_MAX} writers at a time, got {total}"
        raise ValueError(message)
    return number, total


def check_run(run: Any) -> str:
    """Return the name of a group of writers, or raise ValueError."""
    if not isinstance(run, str) or _RUN.fullmatch(run) is None:
        message = f"invalid name of a run, {run!r}: use a letter, then letters, digits, _ . or -"
        raise ValueError(message)
    return run


@dataclass(frozen=True, slots=True)
class Contribution:
    """The files of one writer.

    Attributes:
        spec: The fields and their types.
        shards: The files, in order.
        metadata: The metadata from the user; those of the first writer count.
        overwrite: Whether the group replaces the existing data set.
    """

    spec: dict[str, str]
    shards: tuple[Shard, ...]
    metadata: dict[str, Any]
    overwrite: bool

    @classmethod
    def find(cls, folder: Path, place: Place) -> "Contribution | None":
        """Read the part that a writer has left, if any.

        Raises:
            FormatError: It is damaged, or names files outside the directory.
        """
        path = folder / place.name
        try:
            data = atomic.load(path)
        except FileNotFoundError:
            return None
        with atomic.parsing(path, "the part of a data set"):
            listing, content = listed(data, path)
            if type(content["overwrite"]) is not bool:
                message = "overwrite must be true or false"
                raise TypeError(message)
            return cls(
                texts(content["spec"]),
                shards_of(listing),
                mapping(content["metadata"]),
                content["overwrite"],
            )

    def leave(self, folder: Path, place: Place, *, sync: bool) -> None:
        """Write the part, and replace that of an earlier writer of this number; needs the lock.

        Raises:
            FormatError: Another writer of the group has different fields.
        """
        other = next((one for one in group(folder, place) if one != place), None)
        found = None if other is None else Contribution.find(folder, other)
        if other is not None and found is not None:
            found.check_like(self, str(folder / other.name))
        head = {"version": VERSION, "spec": self.spec, "metadata": self.metadata}
        text = listing_text(head | {"overwrite": self.overwrite}, self.shards)
        atomic.replace(folder / place.name, text, sync=sync)

    def check_like(self, other: "Contribution", path: str) -> None:
        """Refuse a part that has different fields, by a FormatError."""
        if (self.spec, self.overwrite) != (other.spec, other.overwrite):
            message = (
                f"{path}: the writers of a run must have the same fields: {self.spec} with "
                f"overwrite={self.overwrite}, got {other.spec} with {other.overwrite}"
            )
            raise FormatError(message, path)


def names_in(folder: Path) -> set[str]:
    """Return the names of the files that parts in a directory list."""
    parts = (Contribution.find(folder, place) for place in places(folder))
    return {shard.name for part in parts if part is not None for shard in part.shards}


def gather(folder: Path, place: Place) -> tuple[Manifest, bool] | None:
    """Return the data set of a group if all writers have finished, and whether it overwrites.

    Raises:
        FormatError: The parts do not fit together.
    """
    finished = group(folder, place)
    parts = [part for one in finished if (part := Contribution.find(folder, one)) is not None]
    if len(parts) < place.total:
        return None
    for one, part in zip(finished, parts, strict=True):
        part.check_like(parts[0], str(folder / one.name))
    shards = [shard for part in parts for shard in part.shards]
    if len({shard.name for shard in shards}) < len(shards):
        message = f"{folder}: two parts of the run {place.run!r} list the same file"
        raise FormatError(message, str(folder))
    first = parts[0]
    return Manifest(first.spec, tuple(shards), first.metadata, (place.run,)), first.overwrite
