"""Data sets as batches, streams and tables of Arrow."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ingot._core import ArrowArray, arrow_schema, arrow_stream
from ingot.dataset.read.selection import Selection
from ingot.dataset.write.columns import packed_rows
from ingot.dataset.write.packed import PackedRows, stored
from ingot.errors import IngotError, counted
from ingot.extras import require
from ingot.formats.arrow.file import pyarrow
from ingot.formats.arrow.schema import Kind, schema_in
from ingot.interchange.columns import columns_of, kinds_of, parts_of, tree_of

_ROWS = 1 << 16
"""The most rows of a batch whose number of rows is not given."""

_OFFSET_MAX = (1 << 31) - 1
_LARGE = {"u": "U", "z": "Z", "+l": "+L"}
"""Types with offsets of 32 bits, and those with 64."""

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


class ArrowBatch:
    """Rows in Arrow's shape, for anything that takes `__arrow_c_array__`.

    `ds.arrow_batches()` yields these. Libraries such as pyarrow, Polars and nanoarrow take them
    without a copy, and the memory lives for as long as one of them uses it.
    """

    __module__ = "ingot"

    def __init__(self, native: ArrowArray) -> None:
        given: object = native
        if not isinstance(given, ArrowArray):
            message = "call ds.arrow_batches() to get batches in Arrow's shape"
            raise TypeError(message)
        self._native = native

    @property
    def schema(self) -> dict[str, str]:
        """The columns, and the names of their types in Arrow."""
        return {one.name: str(one) for one in Kind.of_tuple(self._native.kind).children}

    @property
    def nbytes(self) -> int:
        """About how many bytes the values take."""
        return self._native.nbytes

    def __len__(self) -> int:
        return len(self._native)

    def __arrow_c_schema__(self) -> object:
        """Return a capsule with the type of the batch: a struct of the columns."""
        return self._native.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return capsules with the type and the values; a requested schema selects columns."""
        native = self._native
        if requested_schema is not None:
            names = [one.name for one in Kind.of_tuple(native.kind).children]
            wanted = [one.name for one in Kind.of(requested_schema).children]
            chosen = [names.index(one) for one in wanted if one in names]
            native = native.select(chosen) if chosen else native
        return native.__arrow_c_array__()

    def __repr__(self) -> str:
        return f"<ingot.ArrowBatch of {counted(len(self), 'row')} of {self.schema!r}>"


class Export:
    """How some rows become batches of Arrow.

    Args:
        selection: The rows.
        metadata: Metadata with a schema; by default those of the data set.
        requested: A capsule with the columns that a consumer asks for, or None.

    Raises:
        TypeError: Arrow has no type for a field.
    """

    def __init__(
        self,
        selection: Selection,
        metadata: Mapping[str, Any] | None = None,
        requested: object = None,
    ) -> None:
        told = selection.source.metadata if metadata is None else metadata
        wanted = None if requested is None else Kind.of(requested)
        columns = columns_of(selection.spec.own(), told, selection.path, wanted)
        names = {one.field.name for one in columns} | {one.paths for one in columns}
        chosen = tuple(name for name in selection.names if name in names)
        self._selection = Selection(selection.source, chosen, selection.rows)
        self._spec = self._selection.spec.own()
        self._tree = tree_of(columns)
        self._metadata = _kept(schema_in(told, selection.path), [*self._tree])
        self._kind = self._struct(list(kinds_of(self._tree)))

    def _struct(self, kinds: Sequence[Kind | None]) -> Kind | None:
        if None in kinds:
            return None
        return Kind("", "+s", 0, self._metadata, kinds)  # type: ignore[arg-type]

    @property
    def kind(self) -> Kind:
        """The type of the batches; if only values tell it, the first batch is read."""
        if self._kind is None:
            next(self.batches())
        if self._kind is None:
            message = f"{self._selection.path}: the types of the columns are unknown"
            raise ValueError(message)
        return self._kind

    def batches(self, rows: int | None = None) -> Iterator[ArrowArray]:
        """Yield rows in batches; if there are none, an empty batch.

        Args:
            rows: The number of rows in each batch but the last; by default as many as take a
                few megabytes.

        Raises:
            ValueError: The values of a field are not of one type.
        """
        count = 0
        for some in stored(self._selection, self._spec, rows=rows, most=_ROWS):
            if some.count:
                yield self._made(some, count)
            count += some.count
        if not count:
            yield self._made(packed_rows(self._spec, []), 0)

    def whole(self) -> ArrowArray:
        """Return all rows as one batch; text of more than 2 GB has a type for it.

        Raises:
            ValueError: The values of a field are not of one type.
        """
        empty = packed_rows(self._spec, [])
        rows = next(stored(self._selection, self._spec, rows=max(1, len(self._selection))), empty)
        most = max((len(one.data) for one in rows.fields), default=0)
        if self._kind is not None and most > _OFFSET_MAX:
            self._kind = _large(self._kind)
        return self._made(rows, 0)

    def _made(self, rows: PackedRows, start: int) -> ArrowArray:
        path = self._selection.path
        packed = dict(zip((name for name, *_ in self._spec.stored()), rows.fields, strict=True))
        try:
            if self._kind is None:
                self._kind = self._struct(list(kinds_of(self._tree, packed)))
            kind = self.kind
            parts = parts_of(self._tree, kind.children, packed, rows.count)
            return ArrowArray.made(kind, parts, rows.count)
        except IngotError:
            raise
        except TypeError as error:
            message = f"{path}: {error}"
            raise TypeError(message) from error
        except ValueError as error:
            message, place = error.args if len(error.args) > 1 else (str(error), rows.count)
            row = ""
            if place < rows.count:
                row = f"row {self._selection.number(start + place)}: "
            message = f"{path}: {row}{message}"
            raise ValueError(message) from error


def _large(kind: Kind) -> Kind:
    """Return a type whose offsets have 64 bits."""
    children = [*map(_large, kind.children)]
    return kind._replace(format=_LARGE.get(kind.format, kind.format), children=children)


def _kept(schema: Kind | None, names: Sequence[str]) -> dict[bytes, bytes]:
    """Return the metadata that a schema once had, without those about columns that are gone."""
    if schema is None:
        return {}
    is_whole = set(names) == {one.name for one in schema.children}
    return {key: one for key, one in schema.metadata.items() if is_whole or key != _PANDAS}


def batches_of(selection: Selection, rows: int | None) -> Iterator[ArrowBatch]:
    """Yield rows as batches of Arrow; there are none without rows."""
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        message = f"rows must be a positive number, got {rows!r:.50}"
        raise ValueError(message)
    return (ArrowBatch(one) for one in Export(selection).batches(rows) if len(one))


def schema_of(selection: Selection) -> object:
    """Return a capsule with the type of rows."""
    return arrow_schema(Export(selection).kind)


def array_of(selection: Selection, requested: object) -> tuple[object, object]:
    """Return capsules with the type of rows, and all of them as one array."""
    return Export(selection, requested=requested).whole().__arrow_c_array__()


def stream_of(selection: Selection, requested: object) -> object:
    """Return a capsule with a stream of rows, which reads them as they are taken."""
    export = Export(selection, requested=requested)
    return arrow_stream(export.kind, export.batches())


def reader_of(selection: Selection, metadata: Mapping[str, Any] | None = None) -> Any:
    """Return rows as a `pyarrow.RecordBatchReader`, which reads them as they are taken.

    Args:
        selection: The rows.
        metadata: Metadata with a schema; by default those of the data set.

    Raises:
        TypeError: Arrow has no type for a field.
    """
    pa = pyarrow()
    batches = map(pa.record_batch, Export(selection, metadata).batches())
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
    pandas = require("pandas", "to_pandas()")
    table = reader_of(selection).read_all()
    frame = table.to_pandas()
    for field, column in zip(table.schema, table.columns, strict=True):
        exact = _NULLABLE.get(str(field.type))
        if exact is not None and column.null_count:
            frame[field.name] = pandas.array(column.to_pylist(), dtype=exact)
    return frame
