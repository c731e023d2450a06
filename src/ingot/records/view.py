"""Some records of a reader, in any order, and how they are chosen."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ingot.errors import counted
from ingot.records.batch import Batch
from ingot.records.indices import (
    Indices,
    Numbers,
    Rows,
    concatenated,
    each,
    number_at,
    numbers_at,
    resolve,
    taken,
)
from ingot.records.ordered import Ordered
from ingot.records.progress import Progress
from ingot.records.split import chosen_by, parts_of
from ingot.records.verification import Verification

if TYPE_CHECKING:
    from ingot.records.reader import Reader, Stats


class ChoosingRecords(Ordered):
    """Chooses among the records of a reader or a view, without reading them."""

    __slots__ = ()

    @abstractmethod
    def _view(self) -> "View":
        """Return a view of all records."""

    def take(self, indices: Indices | SupportsIndex) -> "View":
        """Return a view of the records at `indices`, in that order, without reading them.

        `take(5)` is the first five, or all if there are fewer.

        Raises:
            IndexError: An index is out of range.
        """
        view = self._view()
        return View(view.reader, taken(view.rows, indices, view.reader.path))

    def where(self, mask: npt.NDArray[np.bool_] | Sequence[bool]) -> "View":
        """Return a view of the records for which a mask is true, without reading them.

        Args:
            mask: A boolean for each record.

        Example:
            >>> r.where(r.lengths() > 0)  # doctest: +SKIP
        """
        view = self._view()
        return view.take(chosen_by(mask, len(view)))

    def split(self, *sizes: float, seed: int | None = 0) -> "list[View]":
        """Split the records into disjoint views that read nothing yet.

        Args:
            sizes: The size of each view: fractions (float) or numbers of records (int). If they
                do not cover all records, the remainder, possibly empty, is one more view.
            seed: Seed of the random assignment of records to views; None for consecutive
                records. In both cases, each view keeps the order of the records.

        Raises:
            TypeError: The sizes are neither fractions nor numbers of records.
            ValueError: The sizes add up to more than there are records.

        Example:
            >>> train, test = r.split(0.9)  # doctest: +SKIP
        """
        view = self._view()
        return [view.take(places) for places in parts_of(len(view), sizes, seed)]

    def concat(self, *others: "Reader | View") -> "View":
        """Concatenate the records of this and of other readers and views, as one view.

        The view reads a batch in one native call, whatever files the records are in. If the
        records come from several readers, it stays open when those are closed.

        Raises:
            TypeError: Something else is passed.
        """
        if not all(isinstance(one, ChoosingRecords) for one in others):
            message = f"expected instances of ingot.Reader or ingot.View, got {others!r:.200}"
            raise TypeError(message)
        views = [one._view() for one in (self, *others)]  # noqa: SLF001 -- they are of this class
        readers = list({id(view.reader): view.reader for view in views}.values())
        shifts = dict(zip(map(id, readers), _starts(readers), strict=True))
        tables = [_shifted(view.rows, shifts[id(view.reader)]) for view in views]
        joined = readers[0]._joined(readers)  # noqa: SLF001 -- a view is one with its reader
        return View(joined, concatenated(tables))


class View(ChoosingRecords, Sequence[bytes]):
    """Some records of a reader, in any order. It reads nothing until you access a record.

    A slice of a reader, `take`, `where`, `split` and `concat` return it.

    Attributes:
        reader: The reader that has the records.
        rows: Their numbers in the reader: a range or an array of int64.
    """

    __slots__ = ("reader", "rows")
    __module__ = "ingot"

    def __init__(self, reader: "Reader", rows: Rows) -> None:
        self.reader = reader
        self.rows = rows

    def _view(self) -> "View":
        return self

    @property
    def path(self) -> str:
        """The absolute path or pattern that was opened; of a list, the path of the first file."""
        return self.reader.path

    @property
    def paths(self) -> list[str]:
        """The absolute paths of the files of the reader, in order."""
        return self.reader.paths

    @property
    def nbytes(self) -> int:
        """The size of the files, even if this is a part of them."""
        return self.reader.nbytes

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[bytes]:
        return self.reader.iter(each(self.rows))

    def iter(self, indices: Iterable[SupportsIndex] | None = None) -> Iterator[bytes]:
        """Iterate over the records at `indices` of the view, or all, as `Reader.iter` does."""
        if indices is None:
            return iter(self)
        return self.reader.iter(self._row(index) for index in indices)

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
        return self.reader[resolve(self.rows, index, self.reader.path)]

    def read(self, indices: Indices | None = None) -> Batch:
        """Read the records at `indices` of the view, or all, as `Reader.read` does."""
        return self.reader.read(self._rows(indices))

    def __getitems__(self, indices: Indices) -> list[bytes]:
        """Return the records at `indices`; PyTorch's loader calls this per batch."""
        return self[plain(indices)]

    def _getitems(self, indices: Indices) -> list[bytes]:
        """Return the records at `indices`; Grain calls this per batch."""
        return self[plain(indices)]

    def lengths(self, indices: Indices | None = None) -> npt.NDArray[np.int64]:
        """Return the length of each record, or of those at `indices`, from the index alone."""
        return self.reader.lengths(self._rows(indices))

    def stats(self) -> "Stats":
        """Return figures about the files, even if this is a part of them."""
        return self.reader.stats()

    def verify(self, progress: Progress = None) -> Verification:
        """Read the files completely, even if this is a part, and verify every checksum.

        Args:
            progress: As for `Reader.verify`.

        Returns:
            The damaged records, by their numbers in `reader`, as errors have them.
        """
        return self.reader.verify(progress)

    def _row(self, index: SupportsIndex) -> int:
        return number_at(self.rows, index, self.reader.path)

    def _rows(self, indices: Indices | None) -> Numbers:
        if indices is None:
            return numbers_at(self.rows, range(len(self)))
        return resolve(self.rows, indices, self.reader.path)

    def __repr__(self) -> str:
        return f"<ingot.View of {counted(len(self), 'record')} of {self.reader.path!r}>"


def plain(indices: Indices) -> Indices:
    """Convert a tensor of another library to a numpy array; return anything else unchanged."""
    return np.asarray(indices) if hasattr(indices, "__array__") else indices


def _starts(readers: "Sequence[Reader]") -> list[int]:
    """Return where the records of each reader begin in their concatenation."""
    ends = np.cumsum([len(reader) for reader in readers])
    return [0, *ends.tolist()][: len(readers)]


def _shifted(rows: Rows, shift: int) -> Rows:
    if isinstance(rows, range):
        return range(rows.start + shift, rows.stop + shift, rows.step)
    return rows + shift
