"""The files of a data source: which parts of them to read, and the open ones read as one."""

import glob
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from ingot.compat.array_record.array_record_module import ArrayRecordReader
from ingot.compat.array_record.errors import CAUGHT, translated
from ingot.compat.handle import translation
from ingot.formats.arrayrecord import ArrayRecordReader as Reader

T = TypeVar("T")

_LOGGER = logging.getLogger(__name__)
_THREADS = 64
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
        ValueError: The sequence is empty, or an element has another type.
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


class Files:
    """The open files of a data source, as one reader.

    Attributes:
        reader: All of them, concatenated; None if there are none.
        shifts: The difference between rows in the reader and keys, for each instruction.
        ends: The end of each instruction's file in the reader; -1 if it is not open.
        table: The end of the keys of each instruction, and shifts and ends, as arrays.
        is_whole: Whether all files are open and each key is its own row.
    """

    def __init__(
        self,
        instructions: Sequence[ReadInstruction],
        readers: Sequence[ArrayRecordReader | None],
    ) -> None:
        parts = {one: one.ingot_reader() for one in readers if one is not None}
        ends = dict(zip(parts, accumulate(map(len, parts.values())), strict=True))
        self.reader = Reader.joined(list(parts.values())) if parts else None
        self.shifts: list[int] = []
        self.ends: list[int] = []
        key = 0
        for instruction, one in zip(instructions, readers, strict=True):
            first, end = (0, -1) if one is None else (ends[one] - len(parts[one]), ends[one])
            self.shifts.append(first + instruction.start - key)
            self.ends.append(end)
            key += instruction.num_records
        last = list(accumulate(one.num_records for one in instructions))
        self.is_whole = not any(self.shifts) and self.ends == last
        self.table = np.array([last, self.shifts, self.ends], np.int64)

    def read(self, rows: npt.NDArray[np.int64]) -> list[bytes]:
        """Return the records at some rows, in one native read."""
        if self.reader is None:
            return []
        try:
            return self.reader.__getitems__(rows)
        except CAUGHT as error:
            raise translated(error, self.reader.path) from error

    def iter(self, rows: range) -> Iterator[bytes]:
        """Iterate over records, reading ahead."""
        if self.reader is not None:
            with translation(CAUGHT, translated, self.reader.path):
                yield from self.reader.iter(rows)


def create_readers(paths: Sequence[str], options: str) -> dict[str, ArrayRecordReader]:
    """Open files in parallel, and log those that have groups."""
    if len(paths) > 1:
        each = [{"filename": path, "additional_reader_options": options} for path in paths]
        created = run_in_parallel(create_reader, each, min(len(each), _THREADS))
    else:
        created = [create_reader(path, options) for path in paths]
    for path, reader in zip(paths, created, strict=True):
        check_group_size(path, reader)
    return dict(zip(paths, created, strict=True))


def create_reader(
    filename: str | os.PathLike[str], additional_reader_options: str
) -> ArrayRecordReader:
    """Open a file."""
    return ArrayRecordReader(filename, additional_reader_options)


def check_group_size(filename: str | os.PathLike[str], reader: ArrayRecordReader) -> None:
    """Log an error if records of a file are compressed together."""
    found = re.search(r"group_size:(\d+)", reader.writer_options_string() or "")
    if found is not None and found[1] != "1":
        _LOGGER.error(
            "File %s was created with group size %s. Grain requires group size 1 for good "
            "performance: rewrite it with 'group_size:1'.",
            filename,
            found[1],
        )


def run_in_parallel(
    function: Callable[..., T],
    list_of_kwargs_to_function: Sequence[Mapping[str, Any]],
    num_workers: int,
) -> list[T]:
    """Call a function for each set of arguments, in threads; return the results.

    The first exception is raised; calls that have not started are skipped.
    """
    if num_workers < 1:
        message = "num_workers must be >=1 for parallelism."
        raise ValueError(message)
    with futures.ThreadPoolExecutor(num_workers) as executor:
        calls = [executor.submit(function, **one) for one in list_of_kwargs_to_function]
        try:
            return [call.result() for call in calls]
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
