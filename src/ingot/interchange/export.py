"""Data sets as tables of Arrow."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ingot.dataset.read.selection import Selection
from ingot.dataset.write.columns import packed_rows
from ingot.dataset.write.packed import PackedRows, stored
from ingot.extras import require
from ingot.formats.arrow.library import pyarrow
from ingot.formats.arrow.metadata import schema_in
from ingot.formats.arrow.types import plain
from ingot.interchange.restoring import Column, columns_of, files_of, nested, restored
from ingot.interchange.unpacking import array_of

_PANDAS = b"pandas"
_NULLABLE = {
    "int8": "Int8",
    "int16": "Int16",
    "int32": "Int32",
    "int64": "Int64",
    "uint8": "UInt8",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "bool": "boolean",
}
"""Types of pandas that keep numbers exact beside missing ones."""


def reader_of(selection: Selection, metadata: Mapping[str, Any] | None = None) -> Any:
    """Return rows as a `pyarrow.RecordBatchReader`, which reads them as they are taken.

    Args:
        selection: The rows.
        metadata: Metadata with a schema; by default those of the data set.

    Raises:
        TypeError: Arrow has no type for a field.
    """
    pa = pyarrow()
    batches = _batches(selection, selection.source.metadata if metadata is None else metadata)
    first = next(batches)
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def frame_of(selection: Selection) -> Any:
    """Return rows as a `pandas.DataFrame`.

    Raises:
        TypeError: A data frame has no type for a field.
    """
    for field in selection.spec.fields.values():
        if len(field.codec.shape) > 1:
            message = (
                f"{selection.path}: field {field.name!r} is {field.type}, which a data frame "
                "cannot hold; leave it out with names=, or use to_arrow"
            )
            raise TypeError(message)
    pandas = _pandas()
    table = reader_of(selection).read_all()
    frame = table.to_pandas()
    for field, column in zip(table.schema, table.columns, strict=True):
        exact = _NULLABLE.get(str(field.type))
        if exact is not None and column.null_count:
            frame[field.name] = pandas.array(column.to_pylist(), dtype=exact)
    return frame


def _pandas() -> Any:
    return require("pandas", "to_pandas()")


def _batches(selection: Selection, metadata: Mapping[str, Any]) -> Iterator[Any]:
    """Yield rows in batches; if there are none, an empty batch."""
    spec = selection.spec.own()
    columns = columns_of(spec, metadata, selection.path)
    schema = _Schema(columns, _told(metadata, selection, columns))
    count = 0
    for rows in stored(selection, spec):
        count += rows.count
        if rows.count:
            yield schema.batch(_arrays(selection, rows, columns))
    if not count:
        empty = packed_rows(spec, [])
        yield schema.batch(_arrays(selection, empty, columns))


def _told(metadata: Any, selection: Selection, columns: Sequence[Column]) -> dict[bytes, bytes]:
    """Return the metadata that the schema once had, without what tells of columns that are gone."""
    schema = schema_in(metadata, selection.path)
    if schema is None:
        return {}
    is_whole = {one.path[0] for one in columns} == set(schema.names)
    found: dict[bytes, bytes] = dict(schema.metadata or {})
    return found if is_whole else {k: v for k, v in found.items() if k != _PANDAS}


def _arrays(selection: Selection, rows: PackedRows, columns: Sequence[Column]) -> dict[str, Any]:
    """Return the values of each field, with the types of their columns."""
    stored = dict(zip((name for name, *_ in selection.spec.stored()), rows.fields, strict=True))
    found: dict[str, Any] = {}
    for one in columns:
        found[one.field.name] = _array(one, stored, selection)
    for one in columns:
        if one.paths is not None:
            field = selection.spec.fields.get(one.paths)
            paths = None
            if field is not None:
                paths = _array(Column(field, (), None), stored, selection)
            found[one.field.name] = files_of(found[one.field.name], paths, one.kind)
    return found


def _array(column: Column, stored: Any, selection: Selection) -> Any:
    field = column.field
    present = None
    if field.is_optional:
        present = np.frombuffer(stored[f"{field.name}?"].data, np.bool_)
    kind = None if column.kind is None else plain(column.kind, text=True)
    try:
        array = array_of(field, stored[field.name], present, kind)
    except (TypeError, ValueError) as error:
        message = f"{selection.path}: field {field.name!r}: {error}"
        raise type(error)(message) from error
    return array if column.paths is not None else restored(array, column.kind)


class _Schema:
    """Makes batches that all have the types of the first one."""

    def __init__(self, columns: Sequence[Column], metadata: dict[bytes, bytes]) -> None:
        self._columns = list(columns)
        self._metadata = metadata
        self._schema: Any = None

    def batch(self, arrays: dict[str, Any]) -> Any:
        """Return a batch.

        Raises:
            ValueError: The type of a column is not that of the first batch.
        """
        pa = pyarrow()
        found = dict(nested(self._columns, arrays))
        if self._schema is None:
            fields = [pa.field(name, one.type) for name, one in found.items()]
            self._schema = pa.schema(fields, metadata=self._metadata or None)
        for field, one in zip(self._schema, found.values(), strict=True):
            if field.type != one.type:
                message = (
                    f"field {field.name!r} is {one.type} in some rows, but {field.type} in the "
                    "first; leave it out with names="
                )
                raise ValueError(message)
        return pa.RecordBatch.from_arrays(list(found.values()), schema=self._schema)
