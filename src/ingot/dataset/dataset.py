"""A data set, open for reading: a sequence of rows."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.dataset import iteration
from ingot.dataset.chain import Chain
from ingot.dataset.column import column_of
from ingot.dataset.html import html_of
from ingot.dataset.mask import Mask, field_of, fields_under, picked_by, wanted_by
from ingot.dataset.nested import deep
from ingot.dataset.source import ALL, Indices, Part, Row, Rows, Source
from ingot.dataset.spec import Spec
from ingot.dataset.split import ends_of
from ingot.dataset.stored import Stored
from ingot.dataset.zipped import Zipped
from ingot.records import Verification
from ingot.records.progress import Progress, reporter

Truths: TypeAlias = npt.NDArray[np.bool_]


class Dataset(Sequence[Row]):
    """Rows of named, typed fields, over one or more files.

    `ds[i]` is one row, a dict; `ds[a:b]` a data set of those rows that reads nothing yet;
    `ds[[5, 1, 9]]` (any sequence or array of integers) a dict of what the rows have of each
    field, stacked to an array where that can be, else a list, in one native read. With a
    second index only some fields are read: `ds[i, ["label"]]`, or of a sequence only some
    elements: `ds[i, {"frames": range(10, 20)}]`, of many rows each its own:
    `ds[[5, 1], {"frames": [range(10, 20), range(30, 40)]}]`.

    Made by `ingot.open`. May be used from several threads at once and in forked processes.
    """

    __module__ = "ingot"

    def __init__(
        self, source: Source, names: Sequence[str] | None = None, rows: Rows | None = None
    ) -> None:
        if not hasattr(source, "read_row"):
            message = f"a data set is opened by ingot.open(path), not made of {source!r}"
            raise TypeError(message)
        names = tuple(source.spec if names is None else names)
        self._part = Part(source, names, range(len(source)) if rows is None else rows)
        self._wanted = dict.fromkeys(names, ALL)

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self._part.source, self._part.names, self._part.rows)

    @property
    def path(self) -> str:
        """The absolute path of the directory or file; of the first, if there are several."""
        return self._part.path

    @property
    def spec(self) -> Spec:
        """The fields and their types."""
        return self._part.spec

    @property
    def metadata(self) -> dict[str, Any]:
        """What `DatasetWriter(metadata=...)` was given; a fresh copy on each access.

        Of an HDF5 file these are its attributes, those of a data set in it as `image@units`.
        """
        return self._part.source.metadata

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        return self._part.source.nbytes

    @property
    def others(self) -> tuple[str, ...]:
        """What is in an HDF5 file besides these rows; `ingot.open("x.h5/NAME")` opens it."""
        return tuple(self._part.source.others)

    def __len__(self) -> int:
        return len(self._part)

    def __iter__(self) -> Iterator[Row]:
        return map(deep, iteration.rows(self._part))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> "Dataset": ...
    @overload
    def __getitem__(self, index: tuple[Any, Mask]) -> Row: ...
    @overload
    def __getitem__(self, index: Indices) -> Row: ...
    def __getitem__(self, index: Any) -> "Row | Dataset":
        """Return a row, a part of the data set, or what many rows have of each field."""
        part = self._part
        if _is_one(index):
            return deep(part.source.read_row(part.number(index), self._wanted))
        match index:
            case (which, dict() | list() | tuple() | str() as mask):
                return self._masked(which, mask)
            case slice():
                return Dataset(part.source, part.names, part.rows[index])
        return deep(part.source.read_rows(part.resolve(index), dict.fromkeys(part.names)))

    def _masked(self, index: Any, mask: Mask) -> "Row | Dataset":
        part = self._part
        if _is_one(index):
            wanted = wanted_by(mask, part.spec, part.path)
            return deep(part.source.read_row(part.number(index), wanted))
        if not isinstance(index, slice):
            numbers = part.resolve(index)
            picked = picked_by(mask, part.spec, part.path, len(numbers))
            return deep(part.source.read_rows(numbers, picked))
        picked = picked_by(mask, part.spec, part.path, len(part.rows[index]))
        if any(picks is not None for picks in picked.values()):
            message = "a slice is not read yet: elements are picked of a row, or of a list of rows"
            raise TypeError(message)
        return self.select(*picked)[index]

    def __getitems__(self, indices: Indices) -> list[Row]:
        """Return the rows at `indices` in one read: what PyTorch's loader calls for a batch."""
        part = self._part
        numbers = part.resolve(indices)
        batch = part.source.read_rows(numbers, dict.fromkeys(part.names))
        rows = iteration.rows_of(batch, part.spec.fields, len(numbers), copy=False)
        return [deep(row) for row in rows]

    def available(self, index: SupportsIndex) -> dict[str, bool | range]:
        """Return what a row has of each field: a mask that reads all of it.

        Of a sequence that is the range of its elements.
        """
        return self._part.source.available(self._part.number(index), self._part.names)

    def select(self, *names: str | Sequence[str]) -> "Dataset":
        """Return the data set with some of its fields, in this order.

        A name that has fields inside stands for all of them.

        Raises:
            KeyError: There is no such field.
        """
        listed = [one for name in names for one in ([name] if isinstance(name, str) else name)]
        spec = self.spec
        chosen = dict.fromkeys(
            one for name in listed for one in fields_under(spec, name, self.path)
        )
        return Dataset(self._part.source, tuple(chosen), self._part.rows)

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return what all rows have of a field, as one array.

        Numbers come from the index alone; those that are missing are 0, `present` tells
        which. Text is an array of `numpy.dtypes.StringDType`, in which a missing one is None,
        and arrays of one shape are stacked: both read the values of all rows.

        Raises:
            KeyError: There is no such field.
            TypeError: The values of the field do not make one array.

        Example:
            >>> ds.where(ds.column("caption") == "a cat")  # doctest: +SKIP
        """
        return column_of(self._part, field_of(self.spec, name, self.path))

    def lengths(self, name: str) -> npt.NDArray[np.int64]:
        """Return how many elements each row has of a sequence, from the index alone.

        A sequence that is missing has 0.

        Raises:
            KeyError: There is no such field.
            TypeError: The field is no sequence.

        Example:
            >>> ds.where(ds.lengths("frames") >= 16)  # doctest: +SKIP
        """
        field = field_of(self.spec, name, self.path)
        if not field.is_sequence:
            message = f"{self.path}: field {name!r} is {field.type} and has no elements"
            raise TypeError(message)
        return self._part.source.lengths(name, self._part.rows)

    def present(self, name: str) -> Truths:
        """Return whether each row has a value of a field, from the index alone.

        Raises:
            KeyError: There is no such field.
        """
        if not field_of(self.spec, name, self.path).is_optional:
            return np.ones(len(self), np.bool_)
        return self._part.source.present(name, self._part.rows)

    def take(self, indices: Indices) -> "Dataset":
        """Return the data set of the rows at `indices`, in that order, without reading them."""
        if _is_one(indices):
            message = (
                f"take wants a sequence of indices; ds[:{indices}] has the first {indices} rows"
            )
            raise TypeError(message)
        return Dataset(self._part.source, self._part.names, self._part.resolve(indices))

    def where(self, condition: Callable[..., Truths] | Truths, *names: str) -> "Dataset":
        """Return the data set of those rows whose numbers meet a condition.

        A row in which one of `names` is missing does not meet it.

        Args:
            condition: A truth for each row; or what returns them when it is given the
                columns `names` as arrays.
            names: Fields that are numbers.

        Example:
            >>> ds.where(lambda label: label == 3, "label")  # doctest: +SKIP
        """
        if callable(condition):
            if not names:
                message = "a condition that is a function goes with the names of its columns"
                raise TypeError(message)
            condition = condition(*(self.column(name) for name in names))
        elif names:
            message = "names of fields go with a condition that is a function"
            raise TypeError(message)
        chosen = np.asarray(condition)
        if chosen.dtype != np.bool_ or chosen.shape != (len(self),):
            message = (
                f"a condition is a truth for each of {len(self)} rows, "
                f"not {chosen.dtype} of shape {chosen.shape}"
            )
            raise ValueError(message)
        there = np.all([np.ones(len(self), np.bool_), *map(self.present, names)], axis=0)
        return self.take(np.flatnonzero(chosen & there))

    def split(self, *sizes: float, seed: int | None = 0) -> "list[Dataset]":
        """Return the data set in parts that have no row in common and read nothing yet.

        Args:
            sizes: How much each part gets: fractions (float) or numbers of rows (int). If
                they are less than all, what is left is one more part, be it empty.
            seed: Which rows go where, at random; None for one part behind the other. Either
                way a part has its rows in the order of the data set.

        Raises:
            TypeError: The sizes are neither fractions nor numbers of rows.
            ValueError: They are more than there is.

        Example:
            >>> train, test = ds.split(0.9)  # doctest: +SKIP
        """
        ends = ends_of(len(self), sizes)
        order = np.arange(len(self))
        if seed is not None:
            order = np.random.default_rng(seed).permutation(len(self))
        return [self.take(np.sort(rows)) for rows in np.split(order, ends)]

    def concat(self, *others: "Dataset") -> "Dataset":
        """Return the rows of this and of other data sets, one behind the other.

        Raises:
            ValueError: Their fields differ.
        """
        return Dataset(Chain([self._part, *_parts(others)]))

    def zip(self, *others: "Dataset") -> "Dataset":
        """Return the rows of this data set with the fields of others added, row by row.

        So a field is added to a data set without writing it anew: write it alone, as
        another data set with as many rows.

        Raises:
            ValueError: They have not as many rows, or a field in common.
        """
        return Dataset(Zipped([self._part, *_parts(others)]))

    def stored(self) -> "Dataset":
        """Return the rows as they are stored: pictures, sound and arrays as bytes.

        Numbers stay numbers, and sequences lists. This is for those who decode by
        themselves, on another device say.

        Raises:
            TypeError: The rows are not in Ingot files.
        """
        return Dataset(_raw(self._part.source), self._part.names, self._part.rows)

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the rows as a new data set: a subset, a filter, a split, a zip.

        Values are copied as they are stored, verified, and neither decoded nor encoded, unless
        they are in files of another container.

        Args:
            path: A directory, or one file that ends in `.ingot`.
            options: As of `DatasetWriter`; the metadata are those of this data set if none
                are given.

        Example:
            >>> ds.where(ds.column("label") == 3).save("threes")  # doctest: +SKIP
        """
        from ingot.dataset.writer import DatasetWriter  # noqa: PLC0415 -- it imports this module

        codecs = {one.codec.name: one.codec for one in self.spec.fields.values()}
        options = {"codecs": codecs, "metadata": self.metadata, **options}
        with DatasetWriter(path, self.spec, **options) as writer:
            writer.extend(self)

    def verify(self, progress: Progress = None) -> Verification:
        """Read the files whole, also of a part, and check every checksum in them.

        HDF5 has checksums only of data sets that were made with `fletcher32`, Granular has
        none: `unchecked` names such fields, which are read to see that all of them is there.

        Args:
            progress: Called with the rows done and their total after each index page;
                True writes a line to standard error.

        Returns:
            Which rows are bad, by their numbers in the files. Damage is returned, not raised.
        """
        return self._part.source.verify(reporter(progress, "verified", "rows"))

    def close(self) -> None:
        """Close the files. A second call does nothing."""
        self._part.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        others = f", besides {', '.join(self.others)}" if self.others else ""
        return f"<ingot.Dataset of {len(self)} rows of {self.spec!r} in {self.path!r}{others}>"

    def _repr_html_(self) -> str:
        return html_of(self)


def _is_one(index: Any) -> bool:
    return isinstance(index, int | np.integer) or (
        hasattr(index, "__index__") and getattr(index, "ndim", 0) == 0
    )


def _raw(source: Source) -> Source:
    """Return a source with the values as they are stored."""
    if isinstance(source, Chain | Zipped):
        return type(source)([Part(_raw(one.source), one.names, one.rows) for one in source.parts])
    if isinstance(source, Stored):
        return source.raw()
    message = f"{source.path}: these rows are not in Ingot files"
    raise TypeError(message)


def part_of(dataset: Dataset) -> Part:
    """Return the rows and fields that a data set has of its source."""
    return dataset._part  # noqa: SLF001


def _parts(datasets: Sequence[object]) -> list[Part]:
    parts = [one._part for one in datasets if isinstance(one, Dataset)]  # noqa: SLF001
    if len(parts) < len(datasets) or not parts:
        message = f"other data sets are instances of ingot.Dataset, not {datasets!r}"
        raise TypeError(message)
    return parts
