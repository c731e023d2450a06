"""Choosing rows and fields of a data set, without reading them."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.chain import Chain
from ingot.dataset.read.mask import fields_under
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Source
from ingot.dataset.read.zipped import Zipped
from ingot.records.indices import Indices, Rows, taken
from ingot.records.ordered import Ordered
from ingot.records.split import chosen_by, parts_of

if TYPE_CHECKING:
    from ingot.dataset.read.dataset import Dataset

Truths: TypeAlias = npt.NDArray[np.bool_]


class ChoosingRows(Ordered):
    """Chooses among the rows of a data set, as the verbs of `ingot.Reader` do."""

    _selection: Selection

    @abstractmethod
    def _of(
        self, source: Source, names: Sequence[str] | None = None, rows: Rows | None = None
    ) -> "Dataset":
        """Return a data set."""

    @abstractmethod
    def column(self, name: str) -> npt.NDArray[Any]:
        """Return the values of a field in all rows, as one array."""

    @abstractmethod
    def present(self, name: str) -> Truths:
        """Return for each row whether it has a value for a field."""

    def select(self, *names: str | Sequence[str]) -> "Dataset":
        """Return the data set with some of its fields, in this order.

        The name of a dict of fields selects all fields in it.

        Raises:
            KeyError: There is no such field.
        """
        listed = [one for name in names for one in ([name] if isinstance(name, str) else name)]
        spec = self._selection.spec
        chosen = dict.fromkeys(
            one for name in listed for one in fields_under(spec, name, self._selection.path)
        )
        return self._of(self._selection.source, tuple(chosen), self._selection.rows)

    def take(self, indices: Indices | SupportsIndex) -> "Dataset":
        """Return a data set of the rows at `indices`, in that order, without reading them.

        `take(5)` is the first five, or all if there are fewer.
        """
        selection = self._selection
        rows = taken(selection.rows, indices, selection.path)
        return self._of(selection.source, selection.names, rows)

    def where(self, condition: Callable[..., Truths] | Truths, *names: str) -> "Dataset":
        """Return a data set of the rows that meet a condition on their numbers.

        Rows in which one of `names` is missing are left out.

        Args:
            condition: A boolean for each row, or a function that takes the columns `names` as
                arrays and returns such booleans.
            names: Fields that are numbers or text, or members of JSON such as `meta.lang`.

        Example:
            >>> ds.where(lambda label: label == 3, "label")  # doctest: +SKIP
        """
        if callable(condition):
            if not names:
                message = (
                    "a callable condition requires the names of the fields whose columns it takes, "
                    'such as where(lambda label: label == 3, "label")'
                )
                raise TypeError(message)
            condition = condition(*(self.column(name) for name in names))
        elif names:
            message = "names of fields require a callable condition"
            raise TypeError(message)
        chosen = chosen_by(condition, len(self._selection))
        for name in names:
            chosen = chosen[self.present(name)[chosen]]
        return self.take(chosen)

    def filter(self, condition: Callable[..., Truths] | Truths, *names: str) -> "Dataset":
        """Return a data set of the rows that meet a condition; the same as `where`."""
        return self.where(condition, *names)

    def split(self, *sizes: float, seed: int | None = 0) -> "list[Dataset]":
        """Split the data set into disjoint parts that read nothing yet.

        Args:
            sizes: The size of each part: fractions (float) or numbers of rows (int). If they do
                not cover all rows, the remainder, possibly empty, is one more part.
            seed: Seed of the random assignment of rows to parts; None for consecutive rows. In
                both cases, each part keeps the order of the data set.

        Raises:
            TypeError: The sizes are neither fractions nor numbers of rows.
            ValueError: The sizes add up to more than the data set has.

        Example:
            >>> train, test = ds.split(0.9)  # doctest: +SKIP
        """
        return [self.take(places) for places in parts_of(len(self._selection), sizes, seed)]

    def concat(self, *others: "Dataset") -> "Dataset":
        """Concatenate this and other data sets.

        Raises:
            ValueError: The data sets have different fields.
        """
        return self._of(Chain([self._selection, *_selections(others)]))

    def zip(self, *others: "Dataset") -> "Dataset":
        """Add the fields of other data sets to the rows of this one, row by row.

        Use this to add a field without rewriting the data set: write the new field as another
        data set with the same number of rows.

        Raises:
            ValueError: The numbers of rows differ, or two data sets share a field.
        """
        return self._of(Zipped([self._selection, *_selections(others)]))


def _selections(datasets: Sequence[object]) -> list[Selection]:
    found = [one._selection for one in datasets if isinstance(one, ChoosingRows)]  # noqa: SLF001
    if len(found) < len(datasets) or not found:
        message = f"expected instances of ingot.Dataset, got {datasets!r}"
        raise TypeError(message)
    return found
