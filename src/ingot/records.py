"""Record files: bytes in, bytes out, in any order."""

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot import _core
from ingot.errors import FormatError

Path: TypeAlias = str | os.PathLike[str]
Indices: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]
Progress: TypeAlias = Callable[[int, int], object] | bool


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a file that is not as it was written.

    Attributes:
        record: The first record it makes unreadable, or None if it makes none.
        records: How many records it makes unreadable.
        offset: Where in the file it is.
        reason: What is wrong.
    """

    __module__ = "ingot"

    record: int | None
    records: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What `Reader.verify` found.

    Attributes:
        rows: How many records were checked.
        damaged: Everything that is wrong, in file order.
    """

    __module__ = "ingot"

    rows: int
    damaged: list[Damage]

    @property
    def ok(self) -> bool:
        """Whether every byte of the file is as it was written."""
        return not self.damaged


@dataclass(frozen=True, slots=True)
class Recovery:
    """What `recover` found in a file, and what it did.

    Attributes:
        rows: How many records the file holds now.
        was_whole: Whether nothing had to be done.
        cut_bytes: How many bytes behind the last commit were cut off.
        damaged: Damage that was met on the way. This is not a full verification.
    """

    __module__ = "ingot"

    rows: int
    was_whole: bool
    cut_bytes: int
    damaged: list[Damage]


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures about a file, read from its directory alone.

    Attributes:
        rows: Number of records.
        file_bytes: Size of the file.
        index_bytes: Size of its index pages.
        pages: Number of its index pages.
        dictionaries: Number of compression dictionaries.
        dictionary_bytes: Size of the compression dictionaries.
        closed: Whether the file is whole; False only for `partial=True`.
    """

    __module__ = "ingot"

    rows: int
    file_bytes: int
    index_bytes: int
    pages: int
    dictionaries: int
    dictionary_bytes: int
    closed: bool


class Batch(Sequence[npt.NDArray[np.uint8]]):
    """Records in one block of memory; item `k` is a view on the `k`-th of them.

    Attributes:
        data: All records, one behind the other, as one array of bytes.
        offsets: Where each begins in `data`, and where the last one ends.
    """

    __slots__ = ("data", "offsets")
    __module__ = "ingot"

    def __init__(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None:
        self.data = data
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> npt.NDArray[np.uint8]: ...
    @overload
    def __getitem__(self, index: slice) -> list[npt.NDArray[np.uint8]]: ...
    def __getitem__(
        self, index: SupportsIndex | slice
    ) -> npt.NDArray[np.uint8] | list[npt.NDArray[np.uint8]]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        k = range(len(self))[index]
        return self.data[self.offsets[k] : self.offsets[k + 1]]

    def __repr__(self) -> str:
        return f"<ingot.Batch of {len(self)} records, {len(self.data)} bytes>"


class Reader(_core.Reader, Sequence[bytes]):
    """A record file, open for reading: a sequence of bytes.

    `r[i]` is one record, `r[a:b]` a view that reads nothing yet, `r[[5, 1, 9]]` (any
    sequence or array of integers) a list of records in one native read. Every record
    is verified as it is read; a bad one raises `CorruptFileError` with its number and
    offset. A reader may be used from several threads at once, in forked processes, and
    pickles to its path.

    Made by `ingot.open`.
    """

    __module__ = "ingot"

    def __new__(cls, path: Path, *, partial: bool = False) -> Self:
        """Open the file; see `ingot.open`."""
        reader = super().__new__(cls, os.path.abspath(os.fspath(path)), partial)
        reader._path = os.path.abspath(os.fspath(path))
        reader._partial = partial
        return reader

    _path: str
    _partial: bool

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return self._path

    @property
    def metadata(self) -> dict[str, Any]:
        """What `Writer(metadata=...)` was given; a fresh copy on each access."""
        loaded: dict[str, Any] = json.loads(self.metadata_json())
        return loaded

    def __iter__(self) -> Iterator[bytes]:
        return self.stream(None)

    def iter(self, indices: Iterable[SupportsIndex]) -> Iterator[bytes]:
        """Iterate over the records at `indices`, in that order, reading ahead.

        `indices` may be endless: some thousand of them at most are taken ahead of the
        record that is handed out.

        Raises:
            IndexError: An index is out of range; raised behind the records before it.
            CorruptFileError: A record is damaged; raised behind the records before it.
        """
        return self.stream(iter(indices))

    def read(self, indices: Indices) -> Batch:
        """Read the records at `indices` into one block of memory, without `bytes` objects.

        Example:
            >>> batch = r.read([2, 0])  # doctest: +SKIP
            >>> batch[0]  # a view on the bytes of record 2  # doctest: +SKIP
        """
        buffer, offsets = self.read_buffer(indices)
        return Batch(np.frombuffer(buffer, np.uint8), np.frombuffer(offsets, np.int64))

    def lengths(self, indices: Indices | None = None) -> npt.NDArray[np.int64]:
        """Return the length of each record, or of those at `indices`, from the index alone."""
        rows = range(len(self)) if indices is None else indices
        return np.frombuffer(self.sizes(rows), np.int64)

    def stats(self) -> Stats:
        """Return figures about the file."""
        return Stats(*self.figures())

    def verify(self, progress: Progress = False) -> Verification:
        """Read the whole file and check every checksum in it.

        Args:
            progress: Called with the records done and their total after each index page;
                True writes a line to standard error.

        Returns:
            Which records are bad, by number and offset. Damage is returned, not raised.
        """
        call = _print_progress if progress is True else (progress or None)
        rows, damaged = self.check(call)
        return Verification(rows, [Damage(*damage) for damage in damaged])

    def refresh(self) -> int:
        """Look for records committed since the file was opened; return how many there are.

        Only a file opened with `partial=True` can grow.
        """
        before = len(self)
        self.reopen()
        return len(self) - before

    def _slice(self, index: slice) -> "View":
        return View(self, range(len(self))[index])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._path, self._partial, self.file_id())

    def __repr__(self) -> str:
        if self.closed:
            return f"<ingot.Reader {self._path!r}, closed>"
        return f"<ingot.Reader {self._path!r}, {len(self)} records>"


class View(Sequence[bytes]):
    """A slice of a reader. Reads nothing until it is asked for a record.

    Attributes:
        reader: The reader it is a part of.
        rows: The record numbers it stands for.
    """

    __slots__ = ("reader", "rows")
    __module__ = "ingot"

    def __init__(self, reader: Reader, rows: range) -> None:
        self.reader = reader
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: SupportsIndex) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> "View": ...
    @overload
    def __getitem__(self, index: Indices) -> list[bytes]: ...
    def __getitem__(self, index: SupportsIndex | slice | Indices) -> "bytes | View | list[bytes]":
        if isinstance(index, slice):
            return View(self.reader, self.rows[index])
        if isinstance(index, np.ndarray):
            if index.dtype == np.bool_:
                message = "a boolean mask is not an index array; pass numpy.flatnonzero(mask)"
                raise TypeError(message)
            index = index.tolist()
        if isinstance(index, SupportsIndex):
            return self.reader[self._row(index)]
        if isinstance(index, Sequence) and not isinstance(index, str | bytes | bytearray):
            return self.reader[[self._row(k) for k in index]]
        message = (
            "indices are integers, slices, or sequences or arrays of integers, "
            f"not {type(index).__name__}"
        )
        raise TypeError(message)

    def _row(self, index: SupportsIndex) -> int:
        try:
            return self.rows[index]
        except IndexError:
            message = f"{self.reader.path}: index {index} is out of range for a view of {len(self)}"
            raise IndexError(message) from None

    def __iter__(self) -> Iterator[bytes]:
        return self.reader.iter(self.rows)

    def __repr__(self) -> str:
        return f"<ingot.View of {len(self)} records of {self.reader.path!r}>"


class Writer(_core.Writer):
    """A record file, open for writing.

    The file is written in one pass and in bounded memory. What `flush` has committed
    survives a crash at any later point; `close` makes the file whole, and only then
    does a plain `ingot.open` take it. After an error every later call raises the same
    error: what was committed before stays.

    Args:
        path: The file to write. It must not exist, unless `append` or `overwrite` is given.
        compression: "zstd" or "lz4" compresses each record by itself, None stores them as
            they are, "auto" takes zstd if the first records shrink by it. With zstd a
            dictionary trained on the first records is stored in the file where it pays.
        level: Level of zstd, 1 (fast) to 22 (small).
        metadata: A JSON-able dict that is stored in the file.
        append: Go on at the end of an existing file, closed or not.
        overwrite: Take the place of an existing file when this one is closed.
        sync: Whether `flush` and `close` wait until the device has the bytes. Without it
            they survive a crash of the process, but not of the machine.

    Raises:
        FileExistsError: The file exists and neither `append` nor `overwrite` is given.
        StorageError: Another writer has the file open, or the system refuses.

    Example:
        >>> with ingot.Writer("x.ingot") as w:  # doctest: +SKIP
        ...     w.append(b"a record")
    """

    __module__ = "ingot"
    _path: str

    def __new__(
        cls,
        path: Path,
        *,
        compression: Literal["auto", "zstd", "lz4"] | None = "auto",
        level: int = 3,
        metadata: dict[str, Any] | None = None,
        append: bool = False,
        overwrite: bool = False,
        sync: bool = True,
    ) -> Self:
        """Open the file; see the class."""
        if append and (overwrite or metadata is not None):
            other = "overwrite" if overwrite else "metadata"
            message = f"append=True goes on with the file as it is; {other} has no meaning with it"
            raise ValueError(message)
        path = os.path.abspath(os.fspath(path))
        mode = "create"
        if append and os.path.exists(path):
            mode = "append"
        elif overwrite:
            mode = "replace"
        text = json.dumps({} if metadata is None else metadata, allow_nan=False)
        if not text.startswith("{"):
            message = f"metadata is a dict, not {type(metadata).__name__}"
            raise TypeError(message)
        try:
            writer = super().__new__(cls, path, mode, text, compression, level, sync)
        except FileExistsError as error:
            error.add_note(
                "pass append=True to go on at its end, or overwrite=True to replace it once "
                "the new file is closed"
            )
            raise
        writer._path = path
        return writer

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return self._path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        committed = self.abandon()
        error.add_note(
            f"{self._path}: left unfinished with {committed} committed records; "
            "ingot.open(path, partial=True) reads them, Writer(path, append=True) goes on "
            "behind them, ingot.recover(path) makes the file whole"
        )

    def __del__(self) -> None:
        if not self.closed:
            warnings.warn(
                f"{self._path}: the writer was never closed; records since the last flush are lost",
                ResourceWarning,
                stacklevel=2,
            )

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self)} records"
        return f"<ingot.Writer {self._path!r}, {state}>"


def open(path: Path, *, partial: bool = False) -> Reader:  # noqa: A001
    """Open a record file for reading.

    Costs two or three small reads, whatever the size of the file.

    Args:
        path: The file.
        partial: Read the committed records of a file that is not finished, also while
            its writer goes on; `Reader.refresh` sees more.

    Raises:
        FileNotFoundError: There is no such file.
        UnfinishedFileError: The file does not end in a closing trailer.
        FormatError: It is not an Ingot file, or is damaged.
    """
    return Reader(path, partial=partial)


def recover(path: Path, *, sync: bool = True) -> Recovery:
    """Cut an unfinished file back to its last commit and make it whole.

    Nothing that was committed is lost. A file that is whole already is left alone.

    Raises:
        StorageError: A writer has the file open.
        FormatError: It is not an Ingot file, or is damaged beyond this.
    """
    rows, was_whole, cut_bytes, damaged = _core.recover(os.path.abspath(os.fspath(path)), sync)
    return Recovery(rows, was_whole, cut_bytes, [Damage(*damage) for damage in damaged])


def _reopen(path: str, partial: bool, file_id: bytes) -> Reader:  # noqa: FBT001
    reader = Reader(path, partial=partial)
    if reader.file_id() != file_id:
        message = f"{path}: the file was replaced since the reader was pickled"
        raise FormatError(message, path)
    return reader


def _print_progress(done: int, total: int) -> None:
    end = "\n" if done == total else ""
    sys.stderr.write(f"\rverified {done} of {total} records{end}")
    sys.stderr.flush()
