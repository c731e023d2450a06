"""A data set, open for reading: a sequence of rows."""

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot.dataset import row
from ingot.dataset.batch import Batch
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError

Row: TypeAlias = dict[str, Any]
Indices: TypeAlias = Iterable[SupportsIndex] | npt.NDArray[np.integer[Any]]
Mask: TypeAlias = Mapping[str, bool | range | slice] | Sequence[str]


class Dataset(Sequence[Row]):
    """Rows of named, typed fields, over one or more files.

    `ds[i]` is one row, a dict; `ds[a:b]` a data set of those rows that reads nothing yet;
    `ds[[5, 1, 9]]` (any sequence or array of integers) a dict of what the rows have of each
    field, stacked to an array where that can be, else a list, in one native read. With a
    second index only some fields are read: `ds[i, ["label"]]`, or of a sequence only some
    elements: `ds[i, {"frames": range(10, 20)}]`.

    Made by `ingot.open`. May be used from several threads at once and in forked processes.
    """

    __module__ = "ingot"

    def __init__(
        self,
        source: NativeRows,
        spec: Spec,
        paths: Sequence[str],
        names: Sequence[str] | None = None,
        rows: range | npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._source = source
        self._whole = spec
        self._paths = list(paths)
        self._path = self._paths[0]
        self._names = list(spec) if names is None else list(names)
        self._rows = range(len(source)) if rows is None else rows
        self._numbers = {name: k for k, (name, *_) in enumerate(spec.stored())}

    @classmethod
    def open(cls, paths: Sequence[str], *, partial: bool = False) -> Self:
        """Open files whose rows have the same fields; see `ingot.open`."""
        source = NativeRows(paths, partial)
        try:
            spec = Spec.of_stored(source.fields())
        except ValueError as error:
            message = f"{paths[0]}: {error}"
            raise FormatError(message, paths[0]) from error
        return cls(source, spec, paths)

    @property
    def path(self) -> str:
        """The absolute path of the first file."""
        return self._path

    @property
    def spec(self) -> Spec:
        """The fields and their types."""
        return Spec({name: self._whole.fields[name] for name in self._names})

    @property
    def metadata(self) -> dict[str, Any]:
        """What `DatasetWriter(metadata=...)` was given; a fresh copy on each access."""
        loaded: dict[str, Any] = json.loads(self._source.metadata_json())
        return loaded

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        return self._source.file_bytes()

    def __len__(self) -> int:
        return len(self._rows)

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
        match index:
            case (which, dict() | list() | tuple() as mask):
                return self._masked(which, mask)
            case slice():
                return self._of(self._rows[index])
        if _is_one(index):
            return self._read(index, dict.fromkeys(self._names, _ALL))
        return Batch(self._source, self._path, self._numbers, self._resolve(index)).read(
            self._fields()
        )

    def _masked(self, index: Any, mask: Mask) -> "Row | Dataset":
        if _is_one(index):
            return self._read(index, self._wanted(mask))
        found: Row | Dataset = self.select(*_names_of(mask))[index]
        return found

    def _field(self, name: str) -> Field:
        return self.select(name).spec.fields[name]

    def _fields(self) -> list[Field]:
        return [self._whole.fields[name] for name in self._names]

    def _of(self, rows: range | npt.NDArray[np.int64]) -> "Dataset":
        return Dataset(self._source, self._whole, self._paths, self._names, rows)

    def _row(self, index: SupportsIndex) -> int:
        try:
            return int(self._rows[operator.index(index)])
        except IndexError:
            message = f"{self._path}: index {index} is out of range for {len(self)} rows"
            raise IndexError(message) from None

    def _resolve(self, indices: Indices) -> npt.NDArray[np.int64]:
        if _is_mask(indices):
            message = "a boolean mask is not an index array; pass numpy.flatnonzero(mask)"
            raise TypeError(message)
        if isinstance(self._rows, range) and self._rows == range(len(self._source)):
            return np.frombuffer(self._source.resolve(indices), np.int64)
        return np.array([self._row(index) for index in indices], np.int64)

    def _wanted(self, mask: Mask) -> dict[str, tuple[int | None, int | None]]:
        if not isinstance(mask, Mapping):
            return dict.fromkeys(self.select(*mask).spec, _ALL)
        wanted: dict[str, tuple[int | None, int | None]] = {}
        for name, part in mask.items():
            field = self._field(name)
            if part is True:
                wanted[name] = _ALL
            elif part is not False:
                wanted[name] = _elements(field, part)
        return wanted

    def _read(
        self, index: SupportsIndex, wanted: Mapping[str, tuple[int | None, int | None]]
    ) -> Row:
        number = self._row(index)
        fields = [self._whole.fields[name] for name in wanted]
        present = self._present(number, fields)
        cells = [one for one in fields if one.kind != "column" and present[one.name]]
        asked = [(self._numbers[one.name], *_stored_range(one, wanted[one.name])) for one in cells]
        read = dict(
            zip((one.name for one in cells), self._source.read_row(number, asked), strict=True)
        )
        found: Row = {}
        for one in fields:
            if not present[one.name]:
                found[one.name] = None
            elif one.kind == "column":
                value = self._source.column(self._numbers[one.name], [number])
                found[one.name] = one.codec.decode(bytes(value))
            else:
                value = row.decode(one, read[one.name], self._path, number)
                cut = one.is_sequence and one.kind == "cell"
                found[one.name] = value[slice(*wanted[one.name])] if cut else value
        return found

    def _present(self, number: int, fields: Iterable[Field]) -> dict[str, bool]:
        return {
            one.name: not one.is_optional
            or self._source.column(self._numbers[f"{one.name}?"], [number]) != b"\0"
            for one in fields
        }

    def available(self, index: SupportsIndex) -> dict[str, bool | range]:
        """Return what a row has of each field: a mask that reads all of it.

        Of a sequence that is the range of its elements.
        """
        number = self._row(index)
        present = self._present(number, self._fields())
        found: dict[str, bool | range] = {}
        for one in self._fields():
            found[one.name] = present[one.name]
            if one.is_sequence and present[one.name]:
                found[one.name] = range(self._count(number, one))
        return found

    def _count(self, number: int, field: Field) -> int:
        place = self._numbers[field.name]
        if field.kind == "sequence":
            return int(np.frombuffer(self._source.count([number], place), np.uint64)[0])
        stored = self._source.read_row(number, [(place, None, None)])[0]
        return len(row.decode(field, stored, self._path, number))

    def select(self, *names: str) -> "Dataset":
        """Return the data set with some of its fields, in this order.

        Raises:
            KeyError: There is no such field.
        """
        for name in names:
            if name not in self._names:
                message = f"{self._path}: there is no field {name!r} in {self.spec!r}"
                raise KeyError(message)
        return Dataset(self._source, self._whole, self._paths, names, self._rows)

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return the numbers that all rows have of a field, from the index alone.

        Values that are missing are 0.

        Raises:
            TypeError: The values of the field are no single numbers.
        """
        field = self._field(name)
        if field.kind != "column":
            message = f"{self._path}: field {name!r} is {field.type}, and not a number in each row"
            raise TypeError(message)
        number, dtype = self._numbers[name], field.codec.dtype
        if isinstance(self._rows, range) and self._rows == range(len(self._source)):
            return np.frombuffer(self._source.column(number, None), dtype)
        return np.frombuffer(self._source.column(number, self._rows), dtype)

    def take(self, indices: Indices) -> "Dataset":
        """Return the data set of the rows at `indices`, in that order, without reading them."""
        return self._of(self._resolve(indices))

    def where(self, condition: Callable[..., npt.NDArray[np.bool_]], *names: str) -> "Dataset":
        """Return the data set of those rows whose numbers meet a condition.

        Args:
            condition: Is given the columns `names` as arrays, and returns an array of bool.
            names: Fields that are numbers.

        Example:
            >>> ds.where(lambda label: label == 3, "label")  # doctest: +SKIP
        """
        chosen = np.asarray(condition(*(self.column(name) for name in names)))
        if chosen.dtype != np.bool_ or chosen.shape != (len(self),):
            message = (
                f"the condition gives {len(self)} truths, not {chosen.shape} of {chosen.dtype}"
            )
            raise ValueError(message)
        return self.take(np.flatnonzero(chosen))

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset._again, (self._paths, self._names, self._rows)

    @classmethod
    def _again(
        cls, paths: Sequence[str], names: Sequence[str], rows: range | npt.NDArray[np.int64]
    ) -> Self:
        """Open a data set that was pickled."""
        source = NativeRows(paths, partial=False)
        return cls(source, Spec.of_stored(source.fields()), paths, names, rows)

    def close(self) -> None:
        """Close the files. A second call does nothing."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ingot.Dataset of {len(self)} rows of {self.spec!r} in {self._path!r}>"


_ALL: tuple[int | None, int | None] = (None, None)


def _is_mask(indices: Any) -> bool:
    if isinstance(indices, np.ndarray):
        return bool(indices.dtype == np.bool_)
    return isinstance(indices, list | tuple) and bool(indices) and isinstance(indices[0], bool)


def _is_one(index: Any) -> bool:
    return isinstance(index, int | np.integer) or (
        hasattr(index, "__index__") and not hasattr(index, "__len__")
    )


def _names_of(mask: Mask) -> list[str]:
    if not isinstance(mask, Mapping):
        return list(mask)
    if any(isinstance(part, range | slice) for part in mask.values()):
        message = "a range of elements can be read of one row at a time"
        raise TypeError(message)
    return [name for name, part in mask.items() if part]


def _elements(field: Field, part: object) -> tuple[int | None, int | None]:
    if not field.is_sequence:
        message = f"field {field.name!r} is {field.type} and has no elements"
        raise TypeError(message)
    if not isinstance(part, range | slice):
        message = f"field {field.name!r}: a mask is True, False or a range, not {part!r}"
        raise TypeError(message)
    if part.step not in (None, 1) or (part.start or 0) < 0 or (part.stop or 0) < 0:
        message = f"field {field.name!r}: a range of elements goes up by one, not {part!r}"
        raise ValueError(message)
    return part.start, part.stop


def _stored_range(
    field: Field, wanted: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    return wanted if field.kind == "sequence" else _ALL
