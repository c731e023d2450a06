"""The parts of files to read: paths, patterns, parts of files."""

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

_PART = re.compile(r"(.*)\[(\d+):(\d+)\]", re.DOTALL)


@runtime_checkable
class FileInstruction(Protocol):
    """Some records of a file, as TFDS requests them.

    Attributes:
        filename: The file.
        skip: The number of records to skip at its beginning.
        take: The number of records to read.
        examples_in_shard: The number of records in the file.
    """

    filename: str
    skip: int
    take: int
    examples_in_shard: int


PathLikeOrFileInstruction: TypeAlias = str | os.PathLike[str] | FileInstruction
ArrayRecordDataSourcePaths: TypeAlias = (
    PathLikeOrFileInstruction | Sequence[PathLikeOrFileInstruction]
)


@dataclass(frozen=True)
class ReadInstruction:
    """The records from `start` to `end` of a file."""

    filename: str
    start: int
    end: int
    num_records: int = field(init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            message = f"{self.filename}: invalid range of records, {self.start} to {self.end}"
            raise ValueError(message)
        object.__setattr__(self, "num_records", self.end - self.start)


def listed(paths: ArrayRecordDataSourcePaths) -> list[PathLikeOrFileInstruction]:
    """Return one or more paths as a list, with patterns expanded.

    Raises:
        ValueError: There are none, or one has another type.
    """
    if isinstance(paths, str | os.PathLike | FileInstruction):
        paths = [paths]
    if not isinstance(paths, Sequence):
        message = (  # type: ignore[unreachable]
            "Unsupported path format was used. Path format must be "
            "a Sequence, String, pathlib.Path or FileInstruction."
        )
        raise ValueError(message)  # noqa: TRY004 -- as ArrayRecord does
    if len(paths) == 0:
        message = "Paths sequence can not be of 0 length"
        raise ValueError(message)
    if not all(isinstance(path, str | os.PathLike | FileInstruction) for path in paths):
        message = (
            "All elements in a path sequence must be of type: String, "
            "pathlib.Path, or FileInstruction."
        )
        raise ValueError(message)
    return [found for path in paths for found in _matches(path)]


def _matches(path: PathLikeOrFileInstruction) -> Sequence[PathLikeOrFileInstruction]:
    if isinstance(path, FileInstruction):
        return [path]
    name = os.fspath(path)
    if not glob.has_magic(name) or _PART.fullmatch(name) or Path(name).exists():
        return [path]
    return sorted(glob.glob(name)) or [path]  # noqa: PTH207 -- the pattern is a whole path


def part_of(path: PathLikeOrFileInstruction) -> ReadInstruction | str:
    """Return a part of a file, or the name of a file to read completely."""
    if isinstance(path, FileInstruction):
        return ReadInstruction(os.fspath(path.filename), path.skip, path.skip + path.take)
    name = os.fspath(path)
    found = _PART.fullmatch(name)
    return name if found is None else ReadInstruction(found[1], int(found[2]), int(found[3]))
