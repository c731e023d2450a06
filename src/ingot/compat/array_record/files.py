"""The files of a data source, opened in parallel and read as one."""

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ingot.compat.array_record.array_record_module import ArrayRecordReader
from ingot.compat.array_record.errors import CAUGHT, translated
from ingot.compat.array_record.instructions import ReadInstruction
from ingot.formats.arrayrecord import ArrayRecordReader as Reader

T = TypeVar("T")

_LOGGER = logging.getLogger(__name__)
_THREADS = 64


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
        if self.reader is None:
            return
        try:
            yield from self.reader.iter(rows)
        except CAUGHT as error:
            raise translated(error, self.reader.path) from error


def create_readers(paths: Sequence[str], options: str) -> dict[str, ArrayRecordReader]:
    """Open files in parallel, and log those that have groups."""
    each = [{"filename": path, "additional_reader_options": options} for path in paths]
    if len(each) > 1:
        created = run_in_parallel(create_reader, each, min(len(each), _THREADS))
    else:
        created = [create_reader(**arguments) for arguments in each]
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
