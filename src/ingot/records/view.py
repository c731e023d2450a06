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
    Rows,
    chosen_by,
    concatenated,
    each,
    number_at,
    numbers_at,
    resolve,
)
from ingot.records.progress import Progress
from ingot.records.verbs import Verbs
from ingot.records.verification import Stats, Verification

if TYPE_CHECKING:
    from ingot.records.reader import Reader


class RecordVerbs(Verbs["View"]):
    """Chooses among the records of a reader or a view, without reading them."""

    __slots__ = ()

    @abstractmethod
    def _view(self) -> "View":
        """Return a view of all records."""

    def _table(self) -> tuple[Rows, str]:
        view = self._view()
        return view.rows, view.reader.path

    def _at(self, rows: Rows) -> "View":
        return View(self._view().reader, rows)

    def where(self, mask: npt.NDArray[np.bool_] | Sequence[bool]) -> "View":
        """Return a view of the records for which a mask is true, without reading them.

        Args:
            mask: A boolean for each record.

        Example:
            >>> r.where(r.lengths() > 0)  # doctest: +SKIP
        """
        given: object = mask
        if isinstance(given, str):
            raise TypeError("records have no fields for an expression to name; pass booleans")
        view = self._view()
        return view.take(chosen_by(mask, len(view)))

    def concat(self, *others: "Reader | View") -> "View":
        """Concatenate the records of this and of other readers and views, as one view.

        The view reads a batch in one native call, whatever files the records are in. If the
        records come from several readers, it stays open when those are closed.

        Raises:
            TypeError: Something else is passed.
        """
        if not all(isinstance(one, RecordVerbs) for one in others):
            message = f"expected instances of ingot.Reader or ingot.View, got {others!r:.200}"
            raise TypeError(message)
        views = [one._view() for one in (self, *others)]  # noqa: SLF001 -- they are of this class
        readers = list({id(view.reader): view.reader for view in views}.values())
        shifts = dict(zip(map(id, readers), _starts(readers), strict=True))
        tables = [_shifted(view.rows, shifts[id(view.reader)]) for view in views]
        joined = readers[0]._joined(readers)  # noqa: SLF001 -- a view is one with its reader
        return View(joined, concatenated(tables))

    def __getitems__(self, indices: Indices) -> list[bytes]:
        """Return the records at `indices`; PyTorch's loader calls this per batch."""
        # A tensor of another library becomes an array.
        found = np.asarray(indices) if hasattr(indices, "__array__") else indices
        return self[found]  # type: ignore[index, no-any-return]

    def _getitems(self, indices: Indices) -> list[bytes]:
        """Return the records at `indices`; Grain calls this per batch."""
        return self.__getitems__(indices)


class View(RecordVerbs, Sequence[bytes]):
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
        return self.reader.read(self._numbers(indices))

    def lengths(self, indices: Indices | None = None) -> npt.NDArray[np.int64]:
        """Return the length of each record, or of those at `indices`, from the index alone."""
        return self.reader.lengths(self._numbers(indices))

    def stats(self) -> Stats:
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

    def _numbers(self, indices: Indices | None) -> npt.NDArray[np.int64]:
        if indices is None:
            return numbers_at(self.rows, range(len(self)))
        return resolve(self.rows, indices, self.reader.path)

    def __repr__(self) -> str:
        return f"<ingot.View of {counted(len(self), 'record')} of {self.reader.path!r}>"


def _starts(readers: "Sequence[Reader]") -> list[int]:
    """Return where the records of each reader begin in their concatenation."""
    ends = np.cumsum([len(reader) for reader in readers])
    return [0, *ends.tolist()][: len(readers)]


def _shifted(rows: Rows, shift: int) -> Rows:
    if isinstance(rows, range):
        return range(rows.start + shift, rows.stop + shift, rows.step)
    return rows + shift
