"""`bagz.Reader`: bags as one sequence."""

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.compat.bagz.options import LimitsPlacement, ReaderOptions, ShardingLayout
from ingot.compat.bagz.spec import bag_file, paths_of, translated
from ingot.errors import FormatError
from ingot.formats.bag import BagReader, Stream

Rows: TypeAlias = npt.NDArray[np.int64]
Indices: TypeAlias = Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]

ReaderIterator = Stream
"""The type of iterators over records."""

_CHUNK = 1 << 14
"""How many records are searched at a time."""

_INDEX_BITS = 63
"""Bits of the largest index that an iterator takes, without its sign."""


class Reader(Sequence[bytes]):
    """Bags, open for reading: a sequence of bytes.

    `r[i]` is one record. `r[a:b:c]` is a reader of some of them that shares the files. Negative
    indices count from the end. Several threads and forked processes may use a reader at the
    same time. Pickling stores the arguments that it was opened with. In a subclass with its own
    `__getitem__`, iteration, slices, `reversed` and searches use the records in the files.

    Args:
        file_spec: A path such as `x.bagz`, a sharded path such as `x@8.bagz` or `x@*.bagz`,
            or a comma-separated list of these.
        options: How to read; see `Reader.Options`.

    Raises:
        FileNotFoundError: A file does not exist.
        ValueError: A file is not a bag, or cannot be read.
    """

    Options = ReaderOptions

    _files: BagReader
    _rows: range
    _turns: Rows | None

    def __init__(
        self, file_spec: str | os.PathLike[str], options: ReaderOptions | None = None
    ) -> None:
        self._file_spec = os.fspath(file_spec)
        self._options = ReaderOptions() if options is None else options
        self._open()

    def _open(self) -> None:
        options = self._options
        if options.max_parallelism < 0:
            message = "max_parallelism must be non-negative"
            raise ValueError(message)
        files = [
            bag_file(path, options.limits_placement, options.compression)
            for path in paths_of(self._file_spec)
        ]
        try:
            self._files = BagReader(files)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise translated(error, self._file_spec) from error
        self._turns = None
        if options.sharding_layout is ShardingLayout.INTERLEAVED and len(files) > 1:
            self._turns = _turns(self._files.num_records())
        self._choose(range(len(self._files)))

    def _choose(self, rows: range) -> None:
        self._rows = rows
        self._is_plain = self._turns is None and rows == range(len(self._files))

    @property
    def options(self) -> ReaderOptions:
        """The options."""
        return self._options

    @property
    def file_spec(self) -> str:
        """The files that the reader was opened with."""
        return self._file_spec

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: SupportsIndex) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> "Reader": ...
    def __getitem__(self, index: SupportsIndex | slice) -> "bytes | Reader":
        # The most frequent case comes first: each check costs a tenth of a read.
        if type(index) is int and self._is_plain:
            return self._files[index]
        if isinstance(index, slice):
            return self._view(self._rows[index])
        return self._files[self._place(index)]

    def _view(self, rows: range) -> "Reader":
        view = object.__new__(Reader)
        view._file_spec, view._options = self._file_spec, self._options
        view._files, view._turns = self._files, self._turns
        view._choose(rows)
        return view

    def _place(self, index: SupportsIndex) -> int:
        """Return the position of a record in the concatenation of all files."""
        try:
            row = self._rows[index]
        except IndexError:
            message = f"{self._file_spec}: index {index} out of range [0, {len(self._rows)})"
            raise IndexError(message) from None
        if self._turns is None:
            return row
        turn, file = divmod(row, len(self._turns))
        return int(self._turns[file]) + turn

    def _places(self, rows: range | Rows) -> Rows:
        """Return the positions of existing rows."""
        wanted = np.arange(rows.start, rows.stop, rows.step) if isinstance(rows, range) else rows
        if self._turns is None:
            return wanted
        turns, files = np.divmod(wanted, len(self._turns))
        return self._turns[files] + turns

    def __iter__(self) -> Iterator[bytes]:
        return self._stream(self._rows)

    def _stream(self, rows: range) -> Iterator[bytes]:
        if self._turns is None:
            return self._files.iter(rows)
        return self._files.iter(row for part in _parts(rows) for row in self._places(part).tolist())

    def __reversed__(self) -> "Reader":  # type: ignore[override]
        return self._view(self._rows[::-1])

    def read(self) -> list[bytes]:
        """Return all records."""
        return self._files.__getitems__(self._places(self._rows))

    def read_range(self, start: int, num_records: int) -> list[bytes]:
        """Return `num_records` records, beginning at `start`.

        Raises:
            IndexError: The reader has fewer.
        """
        return self._files.__getitems__(self._places(self._range(start, num_records)))

    def read_range_iter(
        self, start: int, num_records: int, *, read_ahead: int | None = None
    ) -> Iterator[bytes]:
        """Iterate over `num_records` records, beginning at `start`, reading ahead.

        Args:
            start: The first record.
            num_records: The number of records.
            read_ahead: Ignored: the engine chooses how far to read ahead.

        Raises:
            IndexError: The reader has fewer.
        """
        _check(read_ahead)
        return self._stream(self._range(start, num_records))

    def _range(self, start: int, num_records: int) -> range:
        first, last = operator.index(start), operator.index(start) + operator.index(num_records)
        count = len(self._rows)
        if not 0 <= first <= last <= count:
            message = f"{self._file_spec}: range {first}, {last} out of range [0, {count}]"
            raise IndexError(message)
        return self._rows[first:last]

    def read_indices(self, indices: Indices | slice) -> list[bytes]:
        """Return the records at some indices, in one native read.

        If an index occurs more than once, its record is one object.

        Args:
            indices: A slice, or a sequence or an array of integers.

        Raises:
            IndexError: One of them is out of range.
        """
        if isinstance(indices, slice):
            return self._view(self._rows[indices]).read()
        if isinstance(indices, np.ndarray) and indices.ndim != 1:
            message = f"indices must be a 1D array, got {indices.ndim} dimensions"
            raise ValueError(message)
        if self._is_plain and isinstance(indices, list | np.ndarray):
            numbers = indices.tolist() if isinstance(indices, np.ndarray) else indices
            if len(set(numbers)) == len(numbers):
                return self._files.__getitems__(indices)
        places, where = np.unique(self._places(self._wanted(indices)), return_inverse=True)
        records = self._files.__getitems__(places)
        return [records[k] for k in where.tolist()]

    def _wanted(self, indices: Indices) -> Rows:
        wanted = np.asarray(indices)
        if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
            found = type(indices).__name__ if wanted.ndim != 1 else str(wanted.dtype)
            message = f"indices must be a sequence of integers, got {found}"
            raise TypeError(message)
        count = len(self._rows)
        wrong = (wanted < -count) | (wanted >= count)
        if wrong.any():
            self._place(int(wanted[wrong.argmax()]))
        places = wanted.astype(np.int64)
        places[places < 0] += count
        return self._rows.start + places * self._rows.step

    def read_indices_iter(
        self, indices: Iterable[SupportsIndex], *, read_ahead: int | None = None
    ) -> Iterator[bytes]:
        """Iterate over the records at some indices, reading ahead.

        Args:
            indices: Integers, possibly infinite. An exception that they raise is raised after the
                records before it.
            read_ahead: Ignored: the engine chooses how far to read ahead.

        Raises:
            IndexError: An index is out of range; raised after the records before it.
            OverflowError: An index has more than 64 bits; raised after the records before it.
        """
        _check(read_ahead)
        numbers = indices if isinstance(indices, range | np.ndarray) else map(_number, indices)
        return self._files.iter(iter(numbers) if self._is_plain else map(self._place, numbers))

    def index(self, value: bytes, start: int = 0, stop: int | None = None) -> int:
        """Return the first index of a record, from `start` up to `stop`.

        Raises:
            ValueError: The reader has no such record.
        """
        found = next(self._matches(value, range(len(self._rows))[start:stop]), None)
        if found is None:
            message = f"{self._file_spec}: value is not in the bagz.Reader"
            raise ValueError(message)
        return found

    def count(self, value: bytes) -> int:
        """Return the number of records with this value."""
        return sum(1 for _ in self._matches(value, range(len(self._rows))))

    def __contains__(self, value: object) -> bool:
        return next(self._matches(value, range(len(self._rows))), None) is not None

    def _matches(self, value: object, indices: range) -> Iterator[int]:
        """Yield the indices of a record. This reads only records of the same length."""
        if not isinstance(value, bytes):
            message = f"a record must be bytes, got {type(value).__name__}"
            raise TypeError(message)
        for part in _parts(indices):
            places = self._places(self._rows[part.start : part.stop])
            likely = np.flatnonzero(self._files.lengths(places) == len(value))
            records = self._files.iter(places[likely].tolist())
            for k, record in zip(likely.tolist(), records, strict=True):
                if record == value:
                    yield part[k]

    def approximate_bytes_per_record(self) -> float:
        """Return the average stored size of a record in bytes, over all files."""
        stats = self._files.stats()
        is_tail = self._options.limits_placement is LimitsPlacement.TAIL
        stored = stats.file_bytes - ((stats.index_bytes or 0) if is_tail else 0)
        return stored / stats.rows if stats.rows else 0.0

    def __getstate__(self) -> tuple[Any, ...]:
        rows = self._rows
        return self._file_spec, self._options, rows.start, rows.step, len(rows)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._file_spec, self._options, start, step, length = state
        self._open()
        rows = range(start, start + step * length, step)
        if length and (max(rows[0], rows[-1]) >= len(self._rows) or min(rows[0], rows[-1]) < 0):
            message = f"{self._file_spec}: the files were replaced since the reader was pickled"
            raise FormatError(message, self._file_spec)
        self._choose(rows)

    def __repr__(self) -> str:
        return f"<ingot.compat.bagz.Reader {self._file_spec!r}, {len(self)} records>"


def _turns(counts: Rows) -> Rows:
    """Return where the records of each file begin, if files are interleaved.

    Raises:
        ValueError: The sizes of the files do not allow interleaving.
    """
    for k in range(1, len(counts)):
        why = None
        if counts[k] > counts[k - 1]:
            why = "non-increasing", f"the previous one {counts[k - 1]}"
        elif counts[k] + 1 < counts[0]:
            why = "within 1 of each other", f"the first one {counts[0]}"
        if why is not None:
            rule, other = why
            message = f"interleaved shard sizes must be {rule}: file {k} has {counts[k]}, {other}"
            raise ValueError(message)
    starts: Rows = np.cumsum(counts) - counts
    return starts


def _parts(rows: range) -> Iterator[range]:
    return (rows[first : first + _CHUNK] for first in range(0, len(rows), _CHUNK))


def _number(index: SupportsIndex) -> int:
    number = operator.index(index)
    if number.bit_length() > _INDEX_BITS:
        message = f"index {number} is too large: it has more than 64 bits"
        raise OverflowError(message)
    return number


def _check(read_ahead: int | None) -> None:
    if read_ahead is not None and operator.index(read_ahead) < 0:
        message = f"read_ahead must not be negative, got {read_ahead}"
        raise ValueError(message)
