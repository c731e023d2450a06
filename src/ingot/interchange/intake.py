"""Writing tables of Arrow as data sets."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from ingot._core import ArrowArray, ArrowReader
from ingot.codecs import Bytes, codec_of
from ingot.dataset.nested import DOT, deep, flat
from ingot.dataset.read.dataset import Dataset
from ingot.dataset.read.ingot_plan import Unpacking
from ingot.dataset.read.plan import Packed
from ingot.dataset.spec import Field, Spec
from ingot.dataset.write.packed import PackedField, PackedRows
from ingot.dataset.write.writer import DatasetWriter, is_arrow
from ingot.errors import FormatError
from ingot.formats.arrow.file import pyarrow
from ingot.formats.arrow.packer import At, Packer
from ingot.formats.arrow.schema import PATH, Kind, Leaf, features_of, leaves_of, metadata_of
from ingot.formats.base.media import type_of_file
from ingot.formats.base.options import Options
from ingot.formats.discovery import find_dataset

_WHERE = "the table"
_START = 16
_BYTES = 16 << 20
_ROWS = 1 << 14
_T = TypeVar("_T")


def from_arrow(
    data: Any,
    path: str | os.PathLike[str],
    *,
    spec: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """Write a table of Arrow as a data set, and open it.

    The rows are written in pieces of a few megabytes, without a Python object for each value
    where types allow, so a reader may have more rows than fit into memory. pyarrow is not needed.
    If anything fails, no data set is left behind, unless `atomic=False` is given.

    Args:
        data: Anything with `__arrow_c_stream__` or `__arrow_c_array__`, such as tables, batches
            and readers of pyarrow and data frames of Polars and pandas; a
            `pyarrow.dataset.Dataset`; or an iterable of batches.
        path: A directory, or a file that ends in `.ingot`.
        spec: Types of fields that should differ from the inferred ones, such as
            {"image": "jpg", "note": "utf8?"}. Without `?`, a field is optional if the table has
            a null in it; of a stream, only its first batch can tell.
        metadata: Metadata to store besides those of the schema.
        options: Options of `DatasetWriter`.

    Raises:
        FormatError: A column has a type that no field can have, or a value does not fit.

    Example:
        >>> ingot.from_arrow(pyarrow.table({"x": [1, 2]}), "numbers")  # doctest: +SKIP
    """
    return write_input(Input(data), path, spec, metadata, options)


def write_input(
    given: "Input",
    path: str | os.PathLike[str],
    spec: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Dataset:
    """Write rows as a data set, and open it; the arguments are those of `from_arrow`."""
    intake = Intake(given, spec or {})
    told = metadata_of(given.schema, features_of(given.schema)) | dict(metadata or {})
    with DatasetWriter(path, intake.spec, metadata=told, **{"atomic": True, **options}) as writer:
        for some in intake.rows():
            writer.extend(some)
    return opened(writer.path)


def from_pandas(frame: Any, path: str | os.PathLike[str], **options: Any) -> Dataset:
    """Write a data frame of pandas as a data set, and open it.

    Columns have the types that `pyarrow.Table.from_pandas` gives them. An index becomes a
    column, unless it just counts the rows.

    Args:
        frame: The data frame.
        path: A directory, or a file that ends in `.ingot`.
        options: `spec` and `metadata`, as for `from_arrow`, and options of `DatasetWriter`.

    Raises:
        TypeError: It is not a data frame, or a column has values of several types.
        FormatError: A column has a type that no field can have.

    Example:
        >>> ingot.from_pandas(pandas.DataFrame({"x": [1, 2]}), "numbers")  # doctest: +SKIP
    """
    pa = pyarrow()
    if not hasattr(frame, "columns"):
        message = f"expected a data frame of pandas, got {type(frame).__name__}"
        raise TypeError(message)
    try:
        table = pa.Table.from_pandas(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        message = (
            f"a column has values that one type cannot hold: {'; '.join(map(str, error.args))}"
        )
        raise TypeError(message) from error
    return from_arrow(table, path, **options)


def opened(path: str) -> Dataset:
    """Return the data set that was just written."""
    found = find_dataset(path, Options())
    if found is None:
        message = f"{path}: the data set that was written is gone"
        raise FormatError(message, path)
    return found


class Input:
    """Rows that come as batches of Arrow.

    Args:
        data: Anything that `from_arrow` takes.

    Attributes:
        schema: The columns, as a struct.
        sample: The rows that are known before the first one is written: of a table, all.

    Raises:
        TypeError: It is of another type.
        FormatError: It has values, but not columns of them.
    """

    def __init__(self, data: Any) -> None:
        self.schema: Kind
        self.sample: Sequence[ArrowArray]
        self._batches: Iterator[ArrowArray]
        batches = _batches(data)
        is_table = hasattr(data, "__len__") and not isinstance(data, Dataset | list | tuple)
        known = (
            list(batches) if is_table else [one for one in [next(batches, None)] if one is not None]
        )
        schema = getattr(batches, "kind", None) or (known[0].kind if known else None)
        if schema is None:
            message = "there are no rows, and so no columns; pass a table"
            raise TypeError(message)
        self._set(Kind.of_tuple(schema), known, iter(known) if is_table else chain(known, batches))

    def _set(self, schema: Kind, sample: Sequence[ArrowArray], batches: Iterator[Any]) -> None:
        if schema.format != "+s":
            message = f"expected columns, such as those of a table, got an array of {schema}"
            raise FormatError(message, _WHERE)
        self.schema, self.sample, self._batches = schema, sample, batches

    def pieces(self) -> Iterator[ArrowArray]:
        """Yield all rows, in batches of limited size."""
        kind = None
        for batch in self._batches:
            if batch.kind != kind:
                kind = batch.kind
                self._check(Kind.of_tuple(kind))
            size = batch.nbytes // max(1, len(batch))
            step = max(1, min(_ROWS, _BYTES // max(1, size)))
            for start in range(0, len(batch), step):
                yield batch.slice(start, min(start + step, len(batch)))

    def _check(self, kind: Kind) -> None:
        found, first = ({one.name: one for one in each.children} for each in (kind, self.schema))
        if found.keys() != first.keys() or len(kind.children) != len(self.schema.children):
            names = f"{[one.name for one in kind.children]}, but the first has {[*first]}"
            message = f"{_WHERE}: a batch has the columns {names}"
            raise FormatError(message, _WHERE)
        for name, one in found.items():
            if one.differs(first[name]):
                told = f"{one} in a batch, but {first[name]} in the first"
                message = f"{_WHERE}: column {name!r} is {told}; cast the batches to one type"
                raise FormatError(message, _WHERE)

    def has_nulls(self, path: Sequence[str]) -> bool:
        """Return whether there are nulls in the sample.

        Raises:
            FormatError: The array is damaged.
        """
        found = self._of_sample(path, lambda batch: batch.nulls_and_values(path))
        return any(has_nulls for has_nulls, _ in found)

    def has_values(self, path: Sequence[str]) -> bool:
        """Return whether there is anything but nulls in the sample.

        Raises:
            FormatError: The array is damaged.
        """
        found = self._of_sample(path, lambda batch: batch.nulls_and_values(path))
        return any(has_values for _, has_values in found)

    def heads(self, path: Sequence[str]) -> set[bytes]:
        """Return how the values of bytes in the sample begin.

        Raises:
            FormatError: The array is damaged.
        """
        return set(chain(*self._of_sample(path, lambda batch: batch.heads(path, _START))))

    def _of_sample(self, path: Sequence[str], read: Callable[[ArrowArray], _T]) -> Iterator[_T]:
        """Yield what is read of each batch; errors name the column and the row."""
        start = 0
        for batch in self.sample:
            try:
                yield read(batch)
            except FormatError:
                raise
            except ValueError as error:
                reason, row = error.args if len(error.args) > 1 else (str(error), 0)
                message = f"{_WHERE}: row {start + row}: column {DOT.join(path)!r}: {reason}"
                raise FormatError(message, _WHERE) from error
            start += len(batch)


def _batches(data: Any) -> Iterator[ArrowArray]:
    if hasattr(data, "__arrow_c_stream__"):
        return ArrowReader(data)
    if hasattr(data, "__arrow_c_array__"):
        return iter([ArrowArray(data)])
    for name in ("scanner", "to_reader"):
        make = getattr(data, name, None)
        if make is not None:
            return _batches(make())
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _Flat(data)
    message = (
        "expected a table, or anything with __arrow_c_stream__ or __arrow_c_array__, "
        f"got {type(data).__name__}"
    )
    raise TypeError(message)


class _Flat:
    """The batches of an iterable of batches and tables; `kind` is that of the first, if any."""

    def __init__(self, data: Iterable[Any]) -> None:
        self.kind: Any = None
        self._batches = self._each(data)

    def __iter__(self) -> Iterator[ArrowArray]:
        return self

    def __next__(self) -> ArrowArray:
        return next(self._batches)

    def _each(self, data: Iterable[Any]) -> Iterator[ArrowArray]:
        for one in data:
            if not is_arrow(one):
                message = (
                    "expected an iterable of batches with __arrow_c_array__, got one of "
                    f"{type(one).__name__}; ingot.from_generator takes rows"
                )
                raise TypeError(message)
            batches = _batches(one)
            self.kind = self.kind or getattr(batches, "kind", None)
            yield from batches


class Intake:
    """How the columns of a table become fields.

    Args:
        given: The rows.
        wanted: Types that should differ from the inferred ones.
        whole: Whether these are all fields; columns and fields that do not match are for the
            writer to judge.

    Attributes:
        spec: The fields.

    Raises:
        FormatError: A column has a type that no field can have.
        ValueError: A wanted type is invalid, or of no column.
    """

    def __init__(
        self, given: Input, wanted: Mapping[str, Any] | Spec, *, whole: bool = False
    ) -> None:
        self._given = given
        self._leaves: dict[str, Leaf] = {}
        asked = wanted.fields if isinstance(wanted, Spec) else {}
        if wanted and not isinstance(wanted, Spec):
            asked = Spec.of(wanted).fields
        fields: dict[str, Field] = {}
        for leaf in leaves_of(given.schema, features_of(given.schema), _WHERE):
            self._leaves[leaf.name] = leaf
            fields[leaf.name] = _field(leaf, given)
        for leaf in [one for one in self._leaves.values() if one.media]:
            self._add_path(leaf, fields, is_wanted=not whole or f"{leaf.name}_{PATH}" in asked)
        if not whole and wanted:
            unknown = [name for name, _ in flat(wanted) if name not in fields]
            if unknown:
                message = f"there is no column {unknown[0]!r} for the spec, but {list(fields)}"
                raise ValueError(message)
        found = {name: one for name, one in asked.items() if name in fields}
        own = {name: self._adopted(fields[name], one) for name, one in found.items()}
        nullable = {
            name: replace(fields[name], is_optional=found[name].is_optional) for name in own
        }
        self._read = Spec(fields | nullable | {k: one for k, one in own.items() if one is not None})
        self.spec = Spec(asked if whole else fields | asked)
        self._is_direct = all(own.values()) and set(self.spec) == set(fields)
        self._packer = Packer(self._leaves, self._read, _WHERE)

    def _add_path(self, leaf: Leaf, fields: dict[str, Field], *, is_wanted: bool) -> None:
        """Keep the paths of images and other files as a field of its own, if there are any."""
        name, path = f"{leaf.name}_{PATH}", (*leaf.path, PATH)
        if name in fields or not is_wanted or not self._given.has_values(path):
            return
        kind = self._given.schema.at(path) or leaf.kind
        self._leaves[name] = Leaf(name, path, "utf8", kind, nullable=True)
        fields[name] = Field(name, codec_of("utf8"), is_optional=self._given.has_nulls(path))

    @staticmethod
    def _adopted(found: Field, asked: Field) -> Field | None:
        """Return a field that can be packed as it is wanted; None if values must be converted."""
        is_same = (found.codec.name, found.is_sequence) == (asked.codec.name, asked.is_sequence)
        is_file = isinstance(found.codec, Bytes) and asked.codec.dtype is None
        if is_same or (is_file and found.is_sequence == asked.is_sequence):
            return replace(asked, codec=found.codec) if is_same else asked
        return None

    def rows(self, *, decoded: bool = False) -> Iterator[PackedRows | dict[str, Any]]:
        """Yield all rows: packed, or as columns of values where types must be converted.

        Args:
            decoded: Whether columns of values are wanted in any case.

        Raises:
            FormatError: A value does not fit the type of its field.
        """
        start = 0
        for batch in self._given.pieces():
            numbers = np.arange(start, start + len(batch))
            try:
                rows = self._rows(lambda path, batch=batch: (batch, path), numbers, decoded=decoded)  # type: ignore[misc]
            except FormatError as error:
                error.add_note("pass a spec for the field, such as spec={'note': 'utf8?'}")
                raise
            yield rows
            start += len(batch)

    def _rows(
        self, at: At, numbers: np.ndarray[Any, Any], *, decoded: bool
    ) -> PackedRows | dict[str, Any]:
        if self._is_direct and not decoded:
            names = [name for name, *_ in self.spec.stored()]
            stored = self._packer.stored(names, at, numbers)
            return PackedRows([PackedField(*one) for one in stored], len(numbers))
        read: dict[str, Packed] = {}
        for name in self._read.fields:
            read |= self._packer.pack(name, at, numbers)
        fields = list(self._read.fields.values())
        return deep(Unpacking(_WHERE, numbers, fields, dict.fromkeys(self._read)).unpack(read))


def _field(leaf: Leaf, given: Input) -> Field:
    is_sequence = leaf.type.endswith("[]")
    name = leaf.type.removesuffix("[]")
    if leaf.media is not None:
        name = _type_of_files(leaf, given) or name
    is_null = leaf.nullable and given.has_nulls(leaf.bytes_path)
    return Field(leaf.name, codec_of(name), is_sequence, is_null or leaf.kind.format == "n")


def _type_of_files(leaf: Leaf, given: Input) -> str | None:
    """Return the type of all files that are known, if they have one."""
    found = {type_of_file(one, leaf.media or "") for one in given.heads(leaf.bytes_path)}
    return found.pop() if len(found) == 1 else None
