"""Rows to a Parquet file, through pyarrow."""

import os
from pathlib import Path
from typing import Any

from ingot.conversion.content import Content, Rows
from ingot.conversion.sinks.sink import Options, refuse
from ingot.dataset.atomic import writing
from ingot.dataset.read.arrow.library import pyarrow

_GROUP_ROWS = 16_384
_TITLE = "a Parquet file"
_REFUSED = {"json", "msgpack", "pickle", "tree"}


class ParquetSink:
    """Rows on their way to a file."""

    def __init__(self, path: Path, content: Content, options: Options) -> None:
        del options
        for field in (content.fields or {}).values():
            if field.codec.name in _REFUSED:
                refuse(field, _TITLE, "would have it back as something else")
        self._path = path
        self._content = content
        self._library = pyarrow()
        self._parquet = pyarrow("pyarrow.parquet")
        self._file = path.open("xb")
        self._writer: Any = None

    def read(self, content: Content, rows: range) -> Any:
        """Read rows as a table."""
        if isinstance(content, Rows):
            table = content.dataset[rows.start : rows.stop].to_arrow()
        else:
            table = self._library.table(content.read(rows))
        # Parquet cannot tell an empty list from a missing one where both are allowed.
        fields = content.fields or {}
        schema = self._library.schema(
            [
                one.with_nullable(one.name not in fields or fields[one.name].is_optional)
                for one in table.schema
            ],
            table.schema.metadata,
        )
        return self._library.Table.from_arrays(table.columns, schema=schema)

    def add(self, rows: range, piece: Any) -> None:
        """Append rows.

        Raises:
            ValueError: Arrow has another type for these rows than for those before.
        """
        if self._writer is None:
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
