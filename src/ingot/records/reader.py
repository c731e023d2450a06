"""A record file, open for reading."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot._core import Reader as NativeReader
from ingot.errors import FormatError
from ingot.records.batch import Batch
from ingot.records.expand import StrPath, absolute, expand, is_bag
from ingot.records.progress import Progress, reporter
from ingot.records.verification import Damage, Verification

Indices: TypeAlias = Iterable[SupportsIndex] | npt.NDArray[np.integer[Any]]


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
        closed: Whether the file is finished; False only with `partial=True`.
    """

    __module__ = "ingot"

    rows: int
    file_bytes: int
    index_bytes: int
    pages: int
    dictionaries: int
    dictionary_bytes: int
    closed: bool


class Reader(NativeReader, Sequence[bytes]):
    """One or more record files, open for reading: a sequence of bytes.

    `r[i]` is one record. `r[a:b]` is a view that reads nothing yet. `r[[5, 1, 9]]` (any
    sequence or array of integers) is a list of records, read in one native call. Every
    record is verified as it is read; a damaged one raises `CorruptFileError` with its number
    and offset. Several threads and forked processes may use a reader at the same time.
    Pickling a reader stores its path.

    `ingot.open` returns it.
    """

    __module__ = "ingot"

    def __new__(
        cls, source: StrPath | Sequence[StrPath], *, partial: bool = False, verify: bool = True
    ) -> Self:
        """Open the files; see `ingot.open`."""
        paths = expand(source)
        reader = super().__new__(cls, paths, partial, verify)
        reader._paths = paths
        reader._arguments = (_absolute(source), partial, verify)
        return reader

    _paths: list[str]
    _arguments: tuple[str | list[str], bool, bool]

    @property
    def path(self) -> str:
        """The absolute path of the file; of the first one, if there are several."""
        return self._paths[0]

    @property
    def paths(self) -> list[str]:
        """The absolute paths of the files, in order."""
        return list(self._paths)

    @property
    def metadata(self) -> dict[str, Any]:
        """The `metadata` that was passed to `Writer`; a new copy on each access.

        For several files, that of the first.
        """
        loaded: dict[str, Any] = json.loads(self._metadata_json())
        return loaded

    def __iter__(self) -> Iterator[bytes]:
        return self._stream(None)

    def iter(self, indices: Iterable[SupportsIndex]) -> Iterator[bytes]:
        """Iterate over the records at `indices`, in that order, reading ahead.

        `indices` may be infinite: the reader takes at most a few thousand of them ahead of the
        record that it returns.

        Raises:
            IndexError: An index is out of range; raised after the records before it.
            CorruptFileError: A record is damaged; raised after the records before it.
        """
        return self._stream(iter(indices))

    def read(self, indices: Indices) -> Batch:
        """Read the records at `indices` into one block of memory, without `bytes` objects.

        Example:
            >>> batch = r.read([2, 0])  # doctest: +SKIP
            >>> batch[0]  # a view on the bytes of record 2  # doctest: +SKIP
        """
        buffer, offsets, common = self._read_buffer(indices)
        return Batch(np.frombuffer(buffer, np.uint8), np.frombuffer(offsets, np.int64), common)

    def __getitems__(self, indices: Indices) -> list[bytes]:
        """Return the records at `indices`; PyTorch's loader calls this per batch."""
        return self[_plain(indices)]

    def _getitems(self, indices: Indices) -> list[bytes]:
        """Return the records at `indices`; Grain calls this per batch."""
        return self[_plain(indices)]

    def lengths(self, indices: Indices | None = None) -> npt.NDArray[np.int64]:
        """Return the length of each record, or of those at `indices`, from the index alone."""
        rows = np.arange(len(self)) if indices is None else indices
        return np.frombuffer(self._sizes(rows), np.int64)

    def stats(self) -> Stats:
        """Return figures about the file."""
        return Stats(*self._figures())

    def verify(self, progress: Progress = None) -> Verification:
        """Read the whole file and verify every checksum in it.

        Args:
            progress: Called with the number of records done and their total after each index
                page; True prints a progress line to standard error.

        Returns:
            The damaged records, by number and offset. Damage is returned, not raised.
        """
        rows, damaged = self._check(reporter(progress, "verified", "records"))
        unchecked = tuple(path for path in self._paths if is_bag(path))
        return Verification(rows, [Damage(*damage) for damage in damaged], unchecked)

    def refresh(self) -> int:
        """Look for records committed since the file was opened; return the new length.

        Only a file opened with `partial=True` can grow.
        """
        before = len(self)
        self._reopen()
        return len(self) - before

    def _slice(self, index: slice) -> "View":
        return View(self, range(len(self))[index])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return self._restore, (*self._arguments, self._identity())

    @classmethod
    def _restore(
        cls,
        source: str | list[str],
        partial: bool,  # noqa: FBT001
        verify: bool,  # noqa: FBT001
        identity: bytes,
    ) -> Self:
        reader = cls(source, partial=partial, verify=verify)
        reader._check_identity(identity)
        return reader

    def _check_identity(self, identity: bytes) -> None:
        if self._identity() != identity:
            message = f"{self.path}: the file was replaced since the reader was pickled"
            raise FormatError(message, self.path)

    def _identity(self) -> bytes:
        return hashlib.blake2b(self._fingerprint(), digest_size=16).digest()

    def __repr__(self) -> str:
        if self.closed:
            return f"<ingot.Reader {self._name()}, closed>"
        return f"<ingot.Reader {self._name()}, {len(self)} records>"

    def _name(self) -> str:
        others = len(self._paths) - 1
        return f"{self.path!r} and {others} more" if others else repr(self.path)


class View(Sequence[bytes]):
    """A slice of a reader. It reads nothing until you access a record.

    Attributes:
        reader: The reader that it is a slice of.
        rows: The record numbers in the slice.
    """

    __slots__ = ("reader", "rows")
    __module__ = "ingot"

    def __init__(self, reader: Reader, rows: range) -> None:
        self.reader = reader
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: SupportsIndex) -> bytes: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, index: slice) -> "View": ...
    @overload
    def __getitem__(self, index: Indices) -> list[bytes]: ...
    def __getitem__(self, index: SupportsIndex | slice | Indices) -> "bytes | View | list[bytes]":
        if isinstance(index, slice):
            return View(self.reader, self.rows[index])
        # A check against a protocol would cost several times what reading a record does.
        if isinstance(index, int):
            return self.reader[self._row(index)]
        if isinstance(index, SupportsIndex) and not (isinstance(index, np.ndarray) and index.ndim):
            return self.reader[self._row(index)]
        return self.reader[self._rows(index)]

    def read(self, indices: Indices | None = None) -> Batch:
        """Read the records at `indices` of the view, or all, as `Reader.read` does."""
        return self.reader.read(self._rows(range(len(self)) if indices is None else indices))

    def __getitems__(self, indices: Indices) -> list[bytes]:
        """Return the records at `indices`; PyTorch's loader calls this per batch."""
        return self[_plain(indices)]

    def _getitems(self, indices: Indices) -> list[bytes]:
        """Return the records at `indices`; Grain calls this per batch."""
        return self[_plain(indices)]

    def iter(self, indices: Iterable[SupportsIndex]) -> Iterator[bytes]:
        """Iterate over the records at `indices` of the view, as `Reader.iter` does."""
        return self.reader.iter(self._row(index) for index in indices)

    def _row(self, index: SupportsIndex) -> int:
        try:
            return self.rows[index]
        except IndexError:
            message = f"{self.reader.path}: index {index} is out of range for a view of {len(self)}"
            raise IndexError(message) from None

    def _rows(self, indices: Indices) -> npt.NDArray[np.int64] | list[int]:
        if isinstance(indices, range) or (
            isinstance(indices, np.ndarray) and indices.dtype.kind in "iu" and indices.ndim == 1
        ):
            return self._rows_of(np.asarray(indices))
        if isinstance(indices, np.ndarray) and indices.dtype == np.bool_:
            message = "a boolean mask is not an index array; pass numpy.flatnonzero(mask)"
            raise TypeError(message)
        if isinstance(indices, Sequence | np.ndarray) and not isinstance(
            indices, str | bytes | bytearray
        ):
            return [self._row(index) for index in indices]
        message = (
            "indices are integers, slices, or sequences or arrays of integers, "
            f"not {type(indices).__name__}"
        )
        raise TypeError(message)

    def _rows_of(self, indices: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        bad = (indices < -len(self)) | (indices >= len(self))
        if bad.any():
            self._row(int(indices[bad.argmax()]))
        signed = indices.astype(np.int64, copy=False)
        wanted = np.where(signed < 0, signed + len(self), signed)
        return self.rows.start + wanted * self.rows.step

    def __iter__(self) -> Iterator[bytes]:
        return self.reader.iter(self.rows)

    def __repr__(self) -> str:
        return f"<ingot.View of {len(self)} records of {self.reader.path!r}>"


def open(source: StrPath | Sequence[StrPath], *, partial: bool = False) -> Reader:  # noqa: A001
    """Open record files for reading, as one sequence.

    Opening an Ingot file takes two or three small reads, whatever its size; an FFRecord file
    (`.ffr`) is read up to the end of its index.

    Args:
        source: A file, a directory (its record files, sorted by name), a pattern such as
            `train-*.ingot`, or a list of these.
        partial: Read the committed records of an unfinished Ingot file, even while it is
            still being written; `Reader.refresh` finds further records.

    Raises:
        FileNotFoundError: There is no such file.
        UnfinishedFileError: The file was not closed by its writer.
        FormatError: The file is damaged, or its format is unknown.
    """
    return Reader(source, partial=partial)


def _plain(indices: Indices) -> Indices:
    """Convert a tensor of another library to a numpy array; return anything else unchanged."""
    return np.asarray(indices) if hasattr(indices, "__array__") else indices


def _absolute(source: StrPath | Sequence[StrPath]) -> str | list[str]:
    if isinstance(source, str | os.PathLike):
        return str(absolute(source))
    return [str(absolute(one)) for one in source]
