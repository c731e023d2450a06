"""`array_record.python.array_record_data_source`: the records of several files, by number."""

import hashlib
import operator
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.compat.array_record.array_record_module import ArrayRecordReader
from ingot.compat.array_record.errors import CAUGHT, RecordIndexError, RecordKeyError, translated
from ingot.compat.array_record.files import (
    ArrayRecordDataSourcePaths,
    FileInstruction,
    Files,
    PathLikeOrFileInstruction,
    ReadInstruction,
    check_group_size,
    create_reader,
    create_readers,
    listed,
    part_of,
    run_in_parallel,
)
from ingot.compat.array_record.options import parse_reader_options
from ingot.compat.handle import Reopening
from ingot.locks import ProcessLock

__all__ = [
    "ArrayRecordDataSource",
    "ArrayRecordDataSourcePaths",
    "FileInstruction",
    "PathLikeOrFileInstruction",
]

Keys: TypeAlias = Iterable[SupportsIndex] | npt.NDArray[np.integer[Any]]

# Names that ArrayRecord's own tests and some of its users import.
_ReadInstruction = ReadInstruction
_check_group_size = check_group_size
_create_reader = create_reader
_run_in_parallel = run_in_parallel


class ArrayRecordDataSource(Reopening):
    """The records of one or more files, numbered across all of them.

    A batch is one native read over all files. Several threads and forked processes may use a
    data source at the same time. Pickling stores its paths.

    Args:
        paths: A path, a pattern such as "train-*.array_record", a part of a file such as
            "train.array_record[10:20]", a `FileInstruction`, or a sequence of these. A file
            that is used in part need not exist before it is read.
        reader_options: Options of a reader, as a dictionary or as text. They are checked and
            otherwise ignored.

    Raises:
        ValueError: `paths` is empty or has another type, or an option is invalid.
        RuntimeError: A file cannot be read.
    """

    OPENED = ("_files", "_lock", "_readers")

    def __init__(
        self,
        paths: ArrayRecordDataSourcePaths,
        reader_options: Mapping[str, object] | str | None = None,
    ) -> None:
        self._reader_options_string = _options_string(reader_options)
        parse_reader_options(self._reader_options_string)
        opened: dict[str, ArrayRecordReader] = {}
        self._read_instructions = _get_read_instructions(listed(paths), opened)
        self._paths = [one.filename for one in self._read_instructions]
        self._prefix_sums = list(accumulate(one.num_records for one in self._read_instructions))
        self._num_records = self._prefix_sums[-1]
        self._open(opened)

    def _open(self, opened: Mapping[str, ArrayRecordReader] | None = None) -> None:
        self._lock = ProcessLock()
        self._readers = [(opened or {}).get(path) for path in self._paths]
        self._files = Files(self._read_instructions, self._readers)

    def _with(self, numbers: Sequence[int]) -> Files:
        """Open the files of these instructions, unless they are already open.

        This also tries to open as many other files as are already open, so that a data source of
        thousands of files does not join its readers for each file.
        """
        files = self._files
        if all(files.ends[number] >= 0 for number in numbers):
            return files
        with self._lock.own:
            pairs = [*zip(self._paths, self._readers, strict=True)]
            closed = dict.fromkeys(path for path, reader in pairs if reader is None)
            wanted = [path for path in {self._paths[n] for n in numbers} if path in closed]
            if wanted:
                others = (path for path in closed if path not in wanted)
                extra = islice(others, len(self._paths) - len(closed))
                created = create_readers([*wanted, *extra], self._reader_options_string)
                for path in wanted:
                    created[path].ingot_reader()
                opened = {path: reader for path, reader in created.items() if reader.ok()}
                self._readers = [opened.get(path, reader) for path, reader in pairs]
                self._files = Files(self._read_instructions, self._readers)
            return self._files

    def __len__(self) -> int:
        return self._num_records

    @overload
    def __getitem__(self, record_key: SupportsIndex) -> bytes: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, record_key: slice | Keys) -> list[bytes]: ...
    def __getitem__(self, record_key: SupportsIndex | slice | Keys) -> bytes | list[bytes]:
        """Return a record; a slice or a sequence of keys returns a list in one native read."""
        if isinstance(record_key, slice):
            return self._read(range(self._num_records)[record_key])
        try:
            key = operator.index(record_key)  # type: ignore[arg-type]
        except TypeError:
            return self._read(record_key)  # type: ignore[arg-type]
        if not 0 <= key < self._num_records:
            raise self._no_record(key)
        number = bisect_right(self._prefix_sums, key)
        files = self._files
        row = key + files.shifts[number]
        if files.reader is None or row >= files.ends[number]:
            return self._read([key])[0]
        try:
            return files.reader[row]
        except CAUGHT as error:
            raise translated(error, self._paths[number]) from error

    def __getitems__(self, record_keys: Keys) -> list[bytes]:
        """Return the records at `record_keys`, in that order, in one native read.

        These are the records in the files, even if a subclass overrides `__getitem__`.
        """
        return self._read(record_keys)

    def _getitems(self, record_keys: Sequence[SupportsIndex]) -> list[bytes]:
        """Return `self[key]` for each key; Grain calls this per batch."""
        if self._has_own_items():
            return [self[key] for key in record_keys]
        return self._read(record_keys)

    def _has_own_items(self) -> bool:
        return type(self).__getitem__ is not ArrayRecordDataSource.__getitem__

    def _read(self, record_keys: Keys) -> list[bytes]:
        keys = self._checked(record_keys)
        files = self._files
        return files.read(keys) if files.is_whole else self._read_parts(keys)

    def _checked(self, record_keys: Keys) -> npt.NDArray[np.int64]:
        if not isinstance(record_keys, Sequence) and not hasattr(record_keys, "__array__"):
            record_keys = list(record_keys)
        keys = np.asarray(record_keys)
        if keys.dtype.kind not in "iu":
            keys = np.array([operator.index(key) for key in record_keys], dtype=object)
        if keys.ndim != 1:
            message = f"record keys must have one dimension, got {keys.ndim}"
            raise TypeError(message)
        wrong = (keys < 0) | (keys >= self._num_records)
        if wrong.any():
            raise self._no_record(int(keys[wrong.argmax()]))
        return keys.astype(np.int64, copy=False)

    def _read_parts(self, keys: npt.NDArray[np.int64]) -> list[bytes]:
        files = self._files
        numbers = np.searchsorted(files.table[0], keys, side="right")
        _, shifts, ends = files.table[:, numbers]
        if (ends < 0).any():
            files = self._with(np.unique(numbers).tolist())
            _, shifts, ends = files.table[:, numbers]
        rows = keys + shifts
        beyond = rows >= ends
        if beyond.any():
            raise self._out_of_bound(*self._reader_idx_and_position(keys[beyond.argmax()]))
        return files.read(rows)

    def _reader_idx_and_position(self, record_key: SupportsIndex) -> tuple[int, int]:
        """Return the instruction of a key, and the number of its record in the file."""
        key = operator.index(record_key)
        if not 0 <= key < self._num_records:
            raise self._no_record(key)
        number = bisect_right(self._prefix_sums, key)
        return number, key - self._prefix_sums[number] + self._read_instructions[number].end

    def _no_record(self, key: int) -> RecordKeyError:
        message = (
            f"{self._paths[0]}: Record key should be in [0, num_records), "
            f"but {key} is not in [0, {self._num_records})"
        )
        return RecordKeyError(message, self._paths[0])

    def _out_of_bound(self, number: int, position: int) -> RecordIndexError:
        path, reader = self._paths[number], self._readers[number]
        count = 0 if reader is None else reader.num_records()
        return RecordIndexError(f"{path}: index {position} out of bound {count}", path)

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over all records, file by file, reading ahead.

        In a subclass with its own `__getitem__`, this calls it for each record.
        """
        if self._has_own_items():
            yield from map(self.__getitem__, range(self._num_records))
            return
        for number, instruction in enumerate(self._read_instructions):
            files = self._with([number])
            first = self._prefix_sums[number] - instruction.num_records + files.shifts[number]
            count = min(instruction.num_records, files.ends[number] - first)
            yield from files.iter(range(first, first + count))
            if count < instruction.num_records:
                raise self._out_of_bound(number, instruction.start + max(count, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files. The next read opens them again."""
        readers = {reader for reader in self._readers if reader is not None}
        self._open()
        for reader in readers:
            reader.close()

    def __repr__(self) -> str:
        """Return a text that depends only on the paths: Grain stores it in checkpoints."""
        names = os.fsencode("".join(self._paths))
        digest = hashlib.sha1(names, usedforsecurity=False).hexdigest()
        return f"ArrayRecordDataSource(hash_of_paths={digest})"


def _options_string(options: Mapping[str, object] | str | None) -> str:
    if options is None or isinstance(options, str):
        return options or ""
    return ",".join(f"{name}:{value}" for name, value in options.items())


def _get_read_instructions(
    paths: Sequence[PathLikeOrFileInstruction],
    opened: dict[str, ArrayRecordReader] | None = None,
) -> list[ReadInstruction]:
    """Return the part of each file to read. Files that had to be counted stay in `opened`."""
    opened = {} if opened is None else opened
    parts = [part_of(path) for path in paths]
    opened |= create_readers(list(dict.fromkeys(one for one in parts if isinstance(one, str))), "")
    for reader in opened.values():
        reader.ingot_reader()
    return [
        ReadInstruction(part, 0, opened[part].num_records()) if isinstance(part, str) else part
        for part in parts
    ]


def _get_flag_value(flag: Any) -> Any:  # noqa: ANN401 -- any object of a flag
    return flag.value
