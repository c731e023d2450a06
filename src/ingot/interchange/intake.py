"""Writing tables of Arrow as data sets."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ingot.codecs import Bytes, codec_of
from ingot.dataset.nested import flat
from ingot.dataset.read.dataset import Dataset
from ingot.dataset.read.ingot_plan import Unpacking
from ingot.dataset.read.plan import Packed
from ingot.dataset.spec import Field, Spec
from ingot.dataset.write.packed import PackedField, PackedRows
from ingot.dataset.write.writer import DatasetWriter
from ingot.errors import FormatError
from ingot.formats.arrow.file import values_at
from ingot.formats.arrow.leaf import PATH, Leaf, leaves_of
from ingot.formats.arrow.library import pyarrow
from ingot.formats.arrow.metadata import features_of, metadata_of
from ingot.formats.arrow.packer import Packer
from ingot.formats.base.media import type_of_file
from ingot.formats.base.options import Options
from ingot.formats.discovery import find_dataset
from ingot.interchange.input import Input

_WHERE = "the table"
_START = 16


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
    where types allow, so a reader may have more rows than fit into memory. If anything fails,
    no data set is left behind, unless `atomic=False` is given.

    Args:
        data: A `pyarrow.Table`, a `RecordBatchReader`, a `pyarrow.dataset.Dataset`, anything
            with `__arrow_c_stream__` (as data frames of Polars have it), or an iterable of
            batches.
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
    given: Input,
    path: str | os.PathLike[str],
    spec: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Dataset:
    """Write rows as a data set, and open it; the arguments are those of `from_arrow`."""
    intake = Intake(given, spec or {})
    told = metadata_of(given.schema, features_of(given.schema)) | dict(metadata or {})
    with DatasetWriter(path, intake.spec, metadata=told, **{"atomic": True, **options}) as writer:
        intake.write(writer)
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


class Intake:
    """How the columns of a table become fields.

    Args:
        given: The rows.
        wanted: Types that should differ from the inferred ones.

    Attributes:
        spec: The fields.

    Raises:
        FormatError: A column has a type that no field can have.
        ValueError: A wanted type is invalid, or of no column.
    """

    def __init__(self, given: Input, wanted: Mapping[str, Any]) -> None:
        self._given = given
        self._leaves: dict[str, Leaf] = {}
        fields: dict[str, Field] = {}
        for leaf in leaves_of(given.schema, features_of(given.schema), _WHERE):
            self._leaves[leaf.name] = leaf
            fields[leaf.name] = _field(leaf, given)
        for leaf in [one for one in self._leaves.values() if one.media]:
            self._add_path(leaf, fields)
        self._inferred = Spec(fields)
        asked = Spec.of(wanted).fields if wanted else {}
        if unknown := [name for name, _ in flat(wanted) if name not in fields] if wanted else []:
            message = f"there is no column {unknown[0]!r} for the spec, but {list(fields)}"
            raise ValueError(message)
        own = {name: self._adopted(fields[name], one) for name, one in asked.items()}
        self._read = Spec(fields | {name: one for name, one in own.items() if one is not None})
        self.spec = Spec(fields | asked)
        self._is_direct = all(own.values())
        self._packer = Packer(self._leaves, self._read, _WHERE)

    def _add_path(self, leaf: Leaf, fields: dict[str, Field]) -> None:
        """Keep the paths of images and other files as a field of its own, if there are any."""
        name, path = f"{leaf.name}_{PATH}", (*leaf.path, PATH)
        if name in fields or not self._given.has_values(path):
            return
        self._leaves[name] = Leaf(name, path, "utf8", pyarrow().large_binary(), nullable=True)
        fields[name] = Field(name, codec_of("utf8"), is_optional=self._given.has_nulls(path))

    @staticmethod
    def _adopted(found: Field, asked: Field) -> Field | None:
        """Return a field that can be packed as it is wanted; None if values must be converted."""
        is_same = (found.codec.name, found.is_sequence) == (asked.codec.name, asked.is_sequence)
        is_file = isinstance(found.codec, Bytes) and asked.codec.dtype is None
        if is_same or (is_file and found.is_sequence == asked.is_sequence):
            return replace(asked, codec=found.codec) if is_same else asked
        return None

    def write(self, writer: DatasetWriter) -> None:
        """Write all rows.

        Raises:
            FormatError: A value does not fit the type of its field.
        """
        try:
            if self._is_direct:
                writer.extend(self._packed())  # type: ignore[arg-type]
                return
            for columns in self._columns():
                writer.extend(columns)
        except FormatError as error:
            error.add_note("pass a spec for the field, such as spec={'note': 'utf8?'}")
            raise

    def _arrays(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        names = list(self._leaves)
        parts = self._packer.parts(names)
        start = 0
        for batch in self._given.pieces():
            numbers = np.arange(start, start + batch.num_rows)
            taken = (values_at(batch.column(one[0]), one[1:]) for one in parts)
            yield numbers, self._packer.cast(names, taken, numbers)
            start += batch.num_rows

    def _packed(self) -> Iterator[PackedRows]:
        names = [name for name, *_ in self.spec.stored()]
        for numbers, arrays in self._arrays():
            stored = self._packer.stored(names, arrays, numbers)
            yield PackedRows([PackedField(*one) for one in stored], len(numbers))

    def _columns(self) -> Iterator[dict[str, Any]]:
        """Yield the values of rows, for types that they must be converted to."""
        fields = list(self._read.fields.values())
        picks = dict.fromkeys(self._read.fields)
        for numbers, arrays in self._arrays():
            read: dict[str, Packed] = {}
            for name, array in arrays.items():
                read |= self._packer.pack(name, array, numbers)
            yield Unpacking(_WHERE, numbers, fields, picks).unpack(read)


def _field(leaf: Leaf, given: Input) -> Field:
    is_sequence = leaf.type.endswith("[]")
    name = leaf.type.removesuffix("[]")
    if leaf.media is not None:
        name = _type_of_files(leaf, given) or name
    is_null = leaf.nullable and given.has_nulls(leaf.bytes_path)
    is_missing = pyarrow().types.is_null(leaf.plain)
    return Field(leaf.name, codec_of(name), is_sequence, is_null or is_missing)


def _type_of_files(leaf: Leaf, given: Input) -> str | None:
    """Return the type of all files that are known, if they have one."""
    compute = pyarrow("pyarrow.compute")
    found: set[str | None] = set()
    for array in given.values(leaf.bytes_path):
        starts = compute.binary_slice(array.cast(pyarrow().large_binary()), 0, _START)
        known = compute.unique(starts).drop_null().to_pylist()
        found |= {type_of_file(one, leaf.media or "") for one in known}
    return found.pop() if len(found) == 1 else None
