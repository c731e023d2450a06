"""A data set, open for reading: a sequence of rows."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.dataset.nested import DOT, deep, deep_each
from ingot.dataset.read import iteration
from ingot.dataset.read.column import Member, column_of
from ingot.dataset.read.compound import Chain, Zipped
from ingot.dataset.read.expression import Expression
from ingot.dataset.read.html import html_of
from ingot.dataset.read.selection import (
    Mask,
    Selection,
    field_of,
    fields_under,
    picked_by,
    wanted_by,
)
from ingot.dataset.read.source import ALL, Picks, Row, Source
from ingot.dataset.read.values import rows_of
from ingot.dataset.spec import Spec
from ingot.errors import ClosedError, counted, printable
from ingot.records import Stats, Verification
from ingot.records.exit import Closable
from ingot.records.expand import shown
from ingot.records.indices import Indices, Rows, chosen_by, is_one, number_at
from ingot.records.progress import Progress, reporter
from ingot.records.verbs import Verbs

Truths: TypeAlias = npt.NDArray[np.bool_]

if TYPE_CHECKING:
    from ingot.interchange.export import ArrowBatch


class Dataset(Verbs["Dataset"], Closable, Sequence[Row]):
    """Rows of named, typed fields, over one or more files.

    `ds[i]` is one row, a dict. `ds[a:b]` is a data set of those rows and reads nothing yet.
    `ds[[5, 1, 9]]` (any sequence or array of integers) reads several rows in one native call
    and returns a dict of columns: stacked arrays where the values have one shape, lists
    otherwise. A second index selects fields, `ds[i, ["label"]]`, or elements of a sequence,
    `ds[i, {"frames": range(10, 20)}]`. For several rows, each row can have its own range:
    `ds[[5, 1], {"frames": [range(10, 20), range(30, 40)]}]`.

    `take`, `where`, `split` and `concat` return data sets that read nothing yet, as the same
    verbs of a reader return views.

    `ingot.open` returns it. Several threads and forked processes may use it at the same time.
    """

    __module__ = "ingot"

    def __init__(
        self, source: Source, names: Sequence[str] | None = None, rows: Rows | None = None
    ) -> None:
        if not hasattr(source, "read_row"):
            message = f"call ingot.open(path) to open a data set; Dataset cannot wrap {source!r}"
            raise TypeError(message)
        names = tuple(source.spec if names is None else names)
        self._selection = Selection(source, names, range(len(source)) if rows is None else rows)
        self._wanted = dict.fromkeys(names, ALL)
        self._picks: dict[str, Picks] = dict.fromkeys(names)
        self._is_nested = any(DOT in name for name in names)

    def _table(self) -> tuple[Rows, str]:
        return self._selection.rows, self._selection.path

    def _at(self, rows: Rows) -> "Dataset":
        return Dataset(self._selection.source, self._selection.names, rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self._selection.source, self._selection.names, self._selection.rows)

    @property
    def path(self) -> str:
        """The absolute path or pattern that was opened; of a list, the path of the first file."""
        return self._selection.path

    @property
    def paths(self) -> list[str]:
        """The absolute paths of the files, in order; this opens none of them."""
        return list(self._selection.source.paths)

    @property
    def spec(self) -> Spec:
        """The fields and their types."""
        return self._selection.spec

    @property
    def metadata(self) -> dict[str, Any]:
        """The `metadata` that was passed to `DatasetWriter`; a new copy on each access.

        For an HDF5 file, its attributes; those of a data set inside it appear as `image@units`.
        For a Parquet or Arrow file, the metadata of its schema, and the schema under "arrow".
        """
        return self._selection.source.metadata

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        self._check_open()
        return self._selection.source.nbytes

    @property
    def others(self) -> tuple[str, ...]:
        """Other data sets in the HDF5 file, not part of these rows; open with `x.h5/NAME`."""
        return tuple(self._selection.source.others)

    def __len__(self) -> int:
        self._check_open()
        return len(self._selection)

    def __iter__(self) -> Iterator[Row]:
        return deep_each(iteration.rows(self._selection), self._selection.names)

    def iter(self, indices: Iterable[SupportsIndex] | None = None) -> Iterator[Row]:
        """Iterate over the rows at `indices`, or all, in that order, reading ahead.

        `indices` may be infinite: the data set takes at most a few hundred of them ahead of the
        row that it returns. If they raise an exception, it is raised after the rows before it.

        Raises:
            IndexError: An index is out of range; raised after the rows before it.
            CorruptFileError: A row is damaged; raised after the rows before it.
        """
        return deep_each(iteration.rows(self._selection, indices), self._selection.names)

    def read(self, indices: Indices | None = None) -> Row:
        """Read the rows at `indices`, or all, in one native call; return their columns.

        `ds.read([5, 1, 9])` is `ds[[5, 1, 9]]`.
        """
        selection = self._selection
        if indices is None:
            numbers = selection.numbers(range(len(self)))
        else:
            numbers = selection.resolve(indices)
        return deep(selection.read(numbers, self._picks))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> "Dataset": ...
    @overload
    def __getitem__(self, index: tuple[Any, Mask]) -> Row: ...
    @overload
    def __getitem__(self, index: Indices) -> Row: ...
    def __getitem__(self, index: Any) -> "Row | Dataset":
        """Return a row, a part of the data set, or the columns of several rows."""
        selection = self._selection
        # Each call of Python costs several percent of reading a row.
        if type(index) is int or (not (type(index) is np.ndarray and index.ndim) and is_one(index)):
            number = number_at(selection.rows, index, selection.path)
            row = selection.source.read_row(number, self._wanted)
            return deep(row) if self._is_nested else row
        match index:
            case (which, dict() | list() | tuple() | str() as mask):
                return self._masked(which, mask)
            case slice():
                self._check_open()
                return self._at(selection.rows[index])
        return deep(selection.read(selection.resolve(index), self._picks))

    def _masked(self, index: Any, mask: Mask) -> "Row | Dataset":
        selection = self._selection
        if is_one(index):
            wanted = wanted_by(mask, selection.spec, selection.path)
            return deep(selection.source.read_row(selection.number(index), wanted))
        if not isinstance(index, slice):
            numbers = selection.resolve(index)
            picked = picked_by(mask, selection.spec, selection.path, len(numbers))
            return deep(selection.read(numbers, picked))
        picked = picked_by(mask, selection.spec, selection.path, len(selection.rows[index]))
        if any(picks is not None for picks in picked.values()):
            message = "a slice reads nothing yet: index a row or a list of rows to select elements"
            raise TypeError(message)
        return self.select(*picked)[index]

    def __getitems__(self, indices: Indices) -> list[Row]:
        """Return the rows at `indices` in one read; PyTorch's loader calls this per batch."""
        selection = self._selection
        numbers = selection.resolve(indices)
        batch = selection.read(numbers, self._picks)
        rows = rows_of(batch, selection.spec.fields, len(numbers), copy=False)
        return list(deep_each(rows, selection.names))

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
        return Dataset(self._selection.source, tuple(chosen), self._selection.rows)

    def where(self, condition: str | Callable[..., Truths] | Truths, *names: str) -> "Dataset":
        """Return a data set of the rows that meet a condition.

        An expression is compared, counted and combined as in Python, but Python never evaluates
        it: `ds.where("label == 3 and len(frames) > 10")`. The guide lists what it may contain. A
        comparison with a missing value is neither true nor false, so that neither `score > 1` nor
        `not score > 1` chooses a row without a score. Only the columns that the expression names
        are read, some rows at a time.

        Args:
            condition: An expression; or a boolean for each row; or a function that takes the
                columns `names` as arrays and returns such booleans. With a function, rows in which
                one of `names` is missing are left out.
            names: Fields that are numbers or text, or members of JSON such as `meta.lang`, for a
                function.

        Raises:
            KeyError: There is no such field.
            TypeError: A field cannot be used like this, or values cannot be compared.
            ValueError: The text is not an expression, or there is not one boolean per row.

        Example:
            >>> ds.where("label == 3 or 'cat' in caption")  # doctest: +SKIP
            >>> ds.where(lambda label: label == 3, "label")  # doctest: +SKIP
        """
        if isinstance(condition, str):
            if names:
                raise TypeError("an expression contains the names of its fields; pass it alone")
            self._check_open()
            condition = Expression(condition).mask(self._selection)
        elif callable(condition):
            if not names:
                raise TypeError(
                    "a callable condition requires the names of the fields whose columns it takes, "
                    'such as where(lambda label: label == 3, "label")'
                )
            condition = condition(*(self.column(name) for name in names))
        elif names:
            raise TypeError("names of fields require a callable condition")
        chosen = chosen_by(condition, len(self._selection))
        for name in names:
            chosen = chosen[self.present(name)[chosen]]
        return self.take(chosen)

    def filter(self, condition: str | Callable[..., Truths] | Truths, *names: str) -> "Dataset":
        """Return a data set of the rows that meet a condition; the same as `where`."""
        return self.where(condition, *names)

    def concat(self, *others: "Dataset") -> "Dataset":
        """Concatenate this and other data sets.

        Raises:
            ValueError: The data sets have different fields.
        """
        return Dataset(Chain([self._selection, *_selections(others)]))

    def zip(self, *others: "Dataset") -> "Dataset":
        """Add the fields of other data sets to the rows of this one, row by row.

        Use this to add a field without rewriting the data set: write the new field as another
        data set with the same number of rows.

        Raises:
            ValueError: The numbers of rows differ, or two data sets share a field.
        """
        return Dataset(Zipped([self._selection, *_selections(others)]))

    def available(self, index: SupportsIndex) -> dict[str, bool | range]:
        """Return which fields a row has, as a mask that reads all of them.

        For a sequence, this is the range of its elements.
        """
        return self._selection.source.available(
            self._selection.number(index), self._selection.names
        )

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return the values of a field in all rows, as one array.

        Numbers come from the index alone. Missing numbers are 0; `present` tells them apart.
        Text becomes an array of `numpy.dtypes.StringDType`, in which missing values are None.
        Arrays of one shape are stacked. Text and arrays require reading the values of all rows.

        `column("meta.lang")` is the member `lang` of the dicts in a `json` field `meta`, if its
        values are all text, booleans or numbers. All values of the field are read and decoded.

        Raises:
            KeyError: There is no such field, or no row has such a member.
            TypeError: The values of the field cannot be stored in one array.

        Example:
            >>> ds.where(ds.column("caption") == "a cat")  # doctest: +SKIP
        """
        if name not in self.spec:
            return Member.find(self._selection, name).column(self._selection)
        return column_of(self._selection, field_of(self.spec, name, self.path))

    def lengths(self, name: str) -> npt.NDArray[np.int64]:
        """Return the number of elements of a sequence in each row, from the index alone.

        The length of a missing sequence is 0.

        Raises:
            KeyError: There is no such field.
            TypeError: The field is not a sequence.

        Example:
            >>> ds.where(ds.lengths("frames") >= 16)  # doctest: +SKIP
        """
        field = field_of(self.spec, name, self.path)
        if not field.is_sequence:
            raise TypeError(f"{self.path}: field {name!r} is {field.type}, expected a sequence")
        return self._selection.source.lengths(name, self._selection.rows)

    def present(self, name: str) -> Truths:
        """Return for each row whether it has a value for a field, from the index alone.

        For a member of a `json` field, as in `column`, all values are read.

        Raises:
            KeyError: There is no such field.
        """
        if name not in self.spec:
            return Member.find(self._selection, name).present(self._selection)
        if not field_of(self.spec, name, self.path).is_optional:
            return np.ones(len(self), np.bool_)
        return self._selection.source.present(name, self._selection.rows)

    def stored(self) -> "Dataset":
        """Return the rows with values as stored: images, audio and arrays as bytes.

        Numbers stay numbers, and sequences stay lists. Use this to decode elsewhere, for example
        on another device.

        Raises:
            TypeError: The format of the files does not store values as bytes of their own.
        """
        return Dataset(self._selection.source.raw(), self._selection.names, self._selection.rows)

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the rows as a new data set: a subset, a filter, a split, a zip.

        Values in Ingot files are copied as stored, after verification, without decoding and
        encoding; so are images, audio and video in files of other formats, whose other values
        are encoded again.

        Args:
            path: A directory, or a file that ends in `.ingot`. It may be that of this data set,
                with `overwrite=True`: the new one takes its place when it is finished.
                `ingot.convert` writes other formats.
            options: Options of `DatasetWriter`. By default, the metadata of this data set are
                copied.

        Example:
            >>> ds.where("label == 3").save("threes")  # doctest: +SKIP
        """
        from ingot.dataset.write.writer import DatasetWriter  # noqa: PLC0415 -- it imports this module

        codecs = {one.codec.name: one.codec for one in self.spec.fields.values()}
        options = {"codecs": codecs, "metadata": self.metadata, **options}
        with DatasetWriter(path, self.spec, **options) as writer:
            writer.extend(self)

    def to_arrow(self, names: Sequence[str] | None = None) -> Any:
        """Return the rows as a `pyarrow.Table`.

        Fields that came from Arrow have the types they had there. Images, audio and video are
        the files as bytes, `array(TYPE,...)` is a list of fixed size, `json` is text, and nested
        fields are structs, null where all their fields are missing.
        `pyarrow.RecordBatchReader.from_stream(ds)` reads in batches what does not fit in memory.

        Args:
            names: The fields; all of them by default.

        Raises:
            KeyError: There is no such field.
            TypeError: Arrow has no type for a field, such as one of pickles.
            ValueError: The values of an `array` or `tree` field are not of one Arrow type.
        """
        from ingot.interchange.export import reader_of  # noqa: PLC0415 -- it imports this module

        return reader_of(self._fields(names)).read_all()

    def to_pandas(self, names: Sequence[str] | None = None) -> Any:
        """Return the rows as a `pandas.DataFrame`.

        Integers and booleans of which some are missing have the nullable types of pandas, so
        that they stay exact. Sequences are arrays in a column of objects.

        Args:
            names: The fields; all of them by default.

        Raises:
            KeyError: There is no such field.
            TypeError: A data frame cannot hold a field, such as arrays of several dimensions.
        """
        from ingot.interchange.export import frame_of  # noqa: PLC0415 -- it imports this module

        return frame_of(self._fields(names))

    def _fields(self, names: Sequence[str] | None) -> Selection:
        return self._selection if names is None else selection_of(self.select(names))

    def arrow_batches(
        self, rows: int | None = None, names: Sequence[str] | None = None
    ) -> "Iterator[ArrowBatch]":
        """Iterate over the rows in Arrow's shape, without pyarrow, reading ahead.

        Args:
            rows: The number of rows in each batch but the last; by default as many as take a
                few megabytes.
            names: The fields; all of them by default.

        Returns:
            An iterator over `ingot.ArrowBatch`, which anything takes that takes
            `__arrow_c_array__`. The types are those of `to_arrow`.

        Raises:
            KeyError: There is no such field.
            TypeError: Arrow has no type for a field, such as one of pickles.

        Example:
            >>> for batch in ds.arrow_batches(rows=1000): polars.DataFrame(batch)
            ... # doctest: +SKIP
        """
        from ingot.interchange.export import batches_of  # noqa: PLC0415 -- it imports this module

        return batches_of(self._fields(names), rows)

    def __arrow_c_schema__(self) -> object:
        """Return the columns as a schema of Arrow, for anything that takes one."""
        from ingot.interchange.export import schema_of  # noqa: PLC0415 -- it imports this module

        return schema_of(self._selection)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return all rows as one array of Arrow; a requested schema selects columns."""
        from ingot.interchange.export import array_of  # noqa: PLC0415 -- it imports this module

        return array_of(self._selection, requested_schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of Arrow; a requested schema selects columns."""
        from ingot.interchange.export import stream_of  # noqa: PLC0415 -- it imports this module

        return stream_of(self._selection, requested_schema)

    def stats(self) -> Stats:
        """Return figures about the files, even if this is a part of them."""
        return self._selection.source.stats()

    def verify(self, progress: Progress = None) -> Verification:
        """Read the files completely, even if this is a part, and verify every checksum.

        HDF5 has checksums only for data sets that were made with `fletcher32`; tar, JSON lines,
        CSV, `.npy`, MDS, LitData and Granular files have none of their values. `unchecked` names
        such fields, and those of which HDF5 does not find all chunks. `verify` reads them to check
        that nothing is missing, and compares indexed values with the checksums in the index, so it
        finds what has changed since Ingot first opened the file.

        Args:
            progress: Called with the number of rows done and their total after each index page;
                True prints a progress line to standard error.

        Returns:
            The damaged rows, by their numbers in the data set that was opened, as errors have
            them. Damage is returned, not raised.
        """
        return self._selection.source.verify(reporter(progress, "verified", "rows"))

    @property
    def closed(self) -> bool:
        """Whether the files are closed; those of a part are those of the whole."""
        return self._selection.source.closed

    def close(self) -> None:
        """Close the files. A second call does nothing."""
        self._selection.source.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError(f"{self.path}: the data set is closed", self.path)

    def __repr__(self) -> str:
        if self.closed:
            return f"<ingot.Dataset of {self.spec!r} in {self._name()}, closed>"
        others = f", besides {', '.join(map(printable, self.others))}" if self.others else ""
        rows = counted(len(self), "row")
        return f"<ingot.Dataset of {rows} of {self.spec!r} in {self._name()}{others}>"

    def _name(self) -> str:
        is_folder = Path(self.path).is_dir()
        return repr(self.path) if is_folder else shown(self.path, self.paths)

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>" if self.closed else html_of(self)


def selection_of(dataset: Dataset) -> Selection:
    """Return the selection that a data set represents: rows and fields."""
    return dataset._selection  # noqa: SLF001


def _selections(datasets: Sequence[object]) -> list[Selection]:
    found = [selection_of(one) for one in datasets if isinstance(one, Dataset)]
    if len(found) < len(datasets) or not found:
        raise TypeError(f"expected instances of ingot.Dataset, got {datasets!r}")
    return found
