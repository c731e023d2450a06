"""Rows to a Parquet file, through pyarrow."""

import os
from pathlib import Path
from typing import Any

from ingot.dataset.atomic import writing
from ingot.dataset.spec import Field
from ingot.errors import FormatError
from ingot.formats.arrow.file import pyarrow
from ingot.formats.base.content import Content, Rows
from ingot.formats.base.sink import Writing, refuse

_GROUP_ROWS = 16_384
_TITLE = "a Parquet file"
_REFUSED = {"json", "msgpack", "pickle", "tree"}


class ParquetSink:
    """Rows on their way to a file."""

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        del options
        for field in (content.fields or {}).values():
            if field.codec.name in _REFUSED:
                refuse(field, _TITLE, "would have it back as something else")
            if field.codec.dtype is not None and field.codec.dtype.kind == "c":
                refuse(field, _TITLE, "has no complex numbers")
        self._path = path
        self._content = content
        self._library = pyarrow()
        self._parquet = pyarrow("pyarrow.parquet")
        self._file = path.open("xb")
        self._writer: Any = None

    def read(self, content: Content, rows: range) -> Any:
        """Read rows as a table.

        Raises:
            FormatError: Arrow has no type for a value.
        """
        try:
            if isinstance(content, Rows):
                table = content.dataset[rows.start : rows.stop].to_arrow()
            else:
                table = self._library.table(content.read(rows))
        except (self._library.ArrowException, TypeError) as error:
            message = (
                f"{content.path}: rows {rows.start} to {rows.stop - 1}: {_TITLE} has no type for "
                f"a value: {error}; name the fields to convert with names=, or convert to .ingot"
            )
            raise FormatError(message, content.path) from error
        fields = content.fields or {}
        stored = [self._stored(one, fields.get(one.name)) for one in table.schema]
        schema = self._library.schema(stored, table.schema.metadata)
        columns = [
            column if column.type == one.type else column.cast(one.type)
            for column, one in zip(table.columns, stored, strict=True)
        ]
        return self._library.Table.from_arrays(columns, schema=schema)

    def _stored(self, column: Any, field: Field | None) -> Any:
        """Return how Parquet has a column.

        It cannot tell an empty list from a missing one where both are allowed, and pyarrow cannot
        read missing lists of fixed size.
        """
        is_nullable = field is None or field.is_optional
        if is_nullable and self._library.types.is_fixed_size_list(column.type):
            column = column.with_type(self._library.list_(column.type.value_field))
        return column.with_nullable(is_nullable)

    def add(self, rows: range, piece: Any) -> None:
        """Append rows.

        Raises:
            ValueError: Arrow has another type for these rows than for those before.
        """
        if self._writer is None:
            with writing(self._path):
                self._writer = self._parquet.ParquetWriter(self._file, piece.schema)
        if not piece.schema.equals(self._writer.schema):
            message = (
                f"rows {rows.start} to {rows.stop - 1} are not of the types of the rows before: "
                f"expected {self._writer.schema}, got {piece.schema}; convert to .ingot, which "
                "holds every type"
            )
            raise ValueError(message)
        with writing(self._path):
            self._writer.write_table(piece, _GROUP_ROWS)

    def finish(self) -> None:
        """Finish the file."""
        if self._writer is None:
            self.add(range(0), self.read(self._content, range(0)))
        with writing(self._path):
            self._writer.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def abandon(self) -> None:
        """Stop writing."""
        self._file.close()
