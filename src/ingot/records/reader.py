"""A record file, open for reading."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from ingot._core import Reader as NativeReader
from ingot.errors import FormatError, counted
from ingot.formats.table import format_of
from ingot.records.batch import Batch
from ingot.records.exit import Closable
from ingot.records.expand import StrPath, absolute, list_files, name_of, shown
from ingot.records.indices import Indices
from ingot.records.progress import Progress, reporter
from ingot.records.verification import Damage, Stats, Verification
from ingot.records.view import RecordVerbs, View


class Reader(NativeReader, RecordVerbs, Closable, Sequence[bytes]):
    """One or more record files, open for reading: a sequence of bytes.

    `r[i]` is one record. `r[a:b]` is a view that reads nothing yet. `r[[5, 1, 9]]` (any
    sequence or array of integers) is a list of records, read in one native call. `take`,
    `where`, `split` and `concat` return views, as they do for a data set. Every
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
        paths = list_files(source)
        reader = super().__new__(cls, paths, partial, verify)
        reader._paths = paths
        reader._opened = name_of(source, paths)
        reader._arguments = (_absolute(source), partial, verify)
        return reader

    _paths: list[str]
    _opened: str | None = None
    _arguments: tuple[str | list[str], bool, bool]

    @property
    def path(self) -> str:
        """The absolute path or pattern that was opened; of a list, the path of the first file."""
        return self._opened or self._paths[0]

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

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        return self.stats().file_bytes

    def iter(self, indices: Iterable[SupportsIndex] | None = None) -> Iterator[bytes]:
        """Iterate over the records at `indices`, or all, in that order, reading ahead.

        `indices` may be infinite: the reader takes at most a few thousand of them ahead of the
        record that it returns.

        Raises:
            IndexError: An index is out of range; raised after the records before it.
            CorruptFileError: A record is damaged; raised after the records before it.
        """
        return self._stream(None if indices is None else iter(indices))

    def read(self, indices: Indices | None = None) -> Batch:
        """Read the records at `indices`, or all, into one block of memory.

        This makes no `bytes` objects.

        Example:
            >>> batch = r.read([2, 0])  # doctest: +SKIP
            >>> batch[0]  # a view on the bytes of record 2  # doctest: +SKIP
        """
        rows = range(len(self)) if indices is None else indices
        buffer, offsets, common = self._read_buffer(rows)
        return Batch(np.frombuffer(buffer, np.uint8), np.frombuffer(offsets, np.int64), common)

    def lengths(self, indices: Indices | None = None) -> npt.NDArray[np.int64]:
        """Return the length of each record, or of those at `indices`, from the index alone."""
        rows = np.arange(len(self)) if indices is None else indices
        return np.frombuffer(self._sizes(rows), np.int64)

    def stats(self) -> Stats:
        """Return figures about the files."""
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
        formats = ((path, format_of(path)) for path in self._paths)
        unchecked = tuple(path for path, known in formats if known and not known.is_checked)
        return Verification(rows, [Damage(*damage) for damage in damaged], unchecked)

    def refresh(self) -> int:
        """Look for records committed since the file was opened; return how many there are.

        Only a file opened with `partial=True` can grow.
        """
        before = len(self)
        self._reopen()
        return len(self) - before

    def _joined(self, readers: "Sequence[Reader]") -> "Reader":
        """Return the files of several readers as one sequence, without opening them again."""
        return self if len(readers) == 1 else Joined(readers)

    def _view(self) -> View:
        return View(self, range(len(self)))

    def _slice(self, index: slice) -> View:
        return View(self, range(len(self))[index])

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
        return f"<ingot.Reader {self._name()}, {counted(len(self), 'record')}>"

    def _name(self) -> str:
        return shown(self.path, self._paths)


class Joined(Reader):
    """The files of several readers, which are open, as one sequence."""

    def __new__(cls, readers: Sequence[Reader]) -> Self:
        """Join the readers."""
        paths = [path for reader in readers for path in reader.paths]
        joined = NativeReader.__new__(cls, paths, partial=False, check=True, parts=readers)
        joined._paths = paths  # noqa: SLF001 -- it is one of this class
        # The readers may be closed before this one is pickled.
        parts = [(len(reader), *reader.__reduce__()) for reader in readers]
        joined._parts = parts  # noqa: SLF001
        return joined

    _parts: list[tuple[Any, ...]]

    def refresh(self) -> int:
        """Refuse to grow: views of it have the numbers of records that it has now."""
        message = f"{self.path}: refresh the readers that were concatenated, then concatenate again"
        raise ValueError(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._rejoin, (self._parts,)

    @classmethod
    def _rejoin(cls, parts: Sequence[tuple[Any, ...]]) -> Self:
        readers = []
        for length, restore, arguments in parts:
            reader = restore(*arguments)
            if len(reader) != length:
                message = (
                    f"{reader.path}: the file has {len(reader)} records, expected the {length} "
                    "that it had when the view was pickled: concatenate again"
                )
                raise FormatError(message, reader.path)
            readers.append(reader)
        return cls(readers)


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


def _absolute(source: StrPath | Sequence[StrPath]) -> str | list[str]:
    if isinstance(source, str | os.PathLike):
        return str(absolute(source))
    return [str(absolute(one)) for one in source]
