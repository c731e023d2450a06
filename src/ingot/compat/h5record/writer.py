"""Writing rows to a file, in batches."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ingot.compat.h5record.schema import Schema
from ingot.compat.h5record.target import Target, create, resume
from ingot.compat.h5record.values import exact
from ingot.formats.hdf5 import NewColumn

_BATCH_BYTES = 8 << 20


class RowWriter:
    """Writes rows one by one.

    Args:
        path: The file.
        schema: The columns.
        append: Whether to continue the file, or what was kept of it, if there is one.
        data_length: The maximum number of rows.
        chunk_size: The number of rows to write together.
        compression: As for `H5Dataset`.

    Attributes:
        nbytes: The size of the new values in bytes.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        *,
        append: bool,
        data_length: int | None,
        chunk_size: int,
        compression: str | None,
    ) -> None:
        self._path = path
        self._process = os.getpid()
        self._schema = schema
        self._data_length = data_length
        self._chunk_size = chunk_size
        self._create = partial(
            create,
            path,
            schema,
            data_length=data_length,
            chunk_size=chunk_size,
            compression=compression,
        )
        self._pending: list[tuple[Any, ...]] = []
        self._pending_bytes = 0
        self._is_flushing = False
        self.nbytes = 0
        self._target: Target | None = None
        self._columns: dict[str, NewColumn] = {}
        try:
            self._target = resume(path) if append else None
            if self._target is not None:
                self._check(self._target)
        except BaseException:
            if self._target is not None:
                self._target.settle()
            raise

    def _check(self, target: Target) -> None:
        """Refuse a file that rows of the schema cannot be appended to."""
        columns = self._columns = {one.name: one for one in target.columns}
        if columns.keys() != self._schema.keys():
            names = f"the columns {list(columns)}, the schema {list(self._schema)}"
            message = f"{self._path}: the file has {names}"
            raise ValueError(message)
        for name, attribute in self._schema.items():
            new, old = attribute.column(), columns[name]
            is_alike = new.varies == old.varies and (
                not new.varies or (new.element is str) == (old.element is str)
            )
            if not is_alike or (new.values or old.values) != (old.values or new.values):
                message = (
                    f"{self._path}: column {name!r} of the file has another type than {attribute!r}"
                )
                raise ValueError(message)

    @property
    def rows(self) -> int:
        """The number of rows in the file, including those not written yet."""
        return (0 if self._target is None else self._target.rows) + len(self._pending)

    def append(self, row: object) -> None:
        """Append a row.

        Raises:
            TypeError: A value does not have the type of its attribute.
            ValueError: A value does not fit, or a key is missing or unknown.
        """
        if self._data_length is not None and self.rows >= self._data_length:
            message = f"row {self.rows}: more rows than data_length={self._data_length}"
            raise ValueError(message)
        if not isinstance(row, Mapping):
            message = f"row {self.rows}: a row must be a dict, got {type(row).__name__}"
            raise TypeError(message)
        if row.keys() != self._schema.keys():
            self._refuse_keys(row)
        stored = {name: self._stored(name, row[name]) for name in self._schema}
        target = self._target
        if target is None:
            target = self._target = self._create(stored)
        if not self._columns:
            self._columns = {one.name: one for one in target.columns}
        fitting = tuple(self._fitting(value, self._columns[name]) for name, value in stored.items())
        self._pending_bytes += sum(
            len(value) if isinstance(value, str) else value.nbytes for value in fitting
        )
        self._pending.append(fitting)
        if len(self._pending) >= self._chunk_size or self._pending_bytes >= _BATCH_BYTES:
            self._flush(target)

    def _refuse_keys(self, row: Mapping[Any, Any]) -> None:
        missing = [name for name in self._schema if name not in row]
        unknown = [name for name in row if name not in self._schema]
        what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is unknown"
        message = f"row {self.rows}: {what}; the schema has {list(self._schema)}"
        raise ValueError(message)

    def _stored(self, name: str, value: Any) -> Any:
        try:
            return self._schema[name].transform(value)
        except (TypeError, ValueError) as error:
            message = f"row {self.rows}: {name!r}: {error}"
            raise (TypeError if isinstance(error, TypeError) else ValueError)(message) from error

    def _fitting(self, stored: Any, column: NewColumn) -> Any:
        """Return a copy of a value in its stored form: its owner may change it afterwards."""
        place = f"row {self.rows}: {column.name!r}"
        if len(stored) != 1 or (not column.varies and np.shape(stored)[1:] != column.shape):
            message = (
                f"{place}: expected shape {column.shape} as in the first row, "
                f"got {np.shape(stored)}"
            )
            raise ValueError(message)
        if isinstance(stored[0], str):
            return stored[0]
        dtype = np.dtype(column.element) if column.varies else column.dtype
        try:
            return np.array(exact(stored[0], dtype))
        except ValueError as error:
            message = f"{place}: {error}"
            raise ValueError(message) from error

    def _flush(self, target: Target) -> None:
        """Write the buffered rows once: rows that an error leaves are not written again."""
        pending, self._pending = self._pending, []
        self._is_flushing = True
        columns = zip(*pending, strict=True) if pending else ([] for _ in self._schema)
        target.write(dict(zip(self._schema, map(list, columns), strict=True)))
        self._is_flushing = False
        self.nbytes += self._pending_bytes
        self._pending_bytes = 0

    def finish(self) -> None:
        """Write the remaining rows, and finish the file."""
        if self._target is None:
            self._target = self._create({})
        self._flush(self._target)
        self._target.finish()

    def keep(self) -> str:
        """Keep what can be kept of an unfinished file; return a description."""
        if self._target is None:
            return f"{self._path} was not made"
        if os.getpid() != self._process:
            return f"{self._path} is being written by the parent of this process"
        try:
            if not self._is_flushing:
                self._flush(self._target)
        except OSError:
            pass  # Rows that were written before are kept, if possible.
        return self._target.settle()
