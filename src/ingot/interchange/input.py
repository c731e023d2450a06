"""What gives tables: Arrow's own classes, and whatever speaks its protocol."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from ingot.formats.arrow.file import Path, values_at
from ingot.formats.arrow.library import pyarrow
from ingot.formats.arrow.packing import valid

_BYTES = 16 << 20
_ROWS = 1 << 14


class Input:
    """Rows that come as tables.

    Args:
        data: A table, a batch, a reader, a data set of pyarrow, anything with
            `__arrow_c_stream__`, or an iterable of batches.

    Attributes:
        schema: The columns, of type pyarrow.Schema.
        sample: The rows that are known before the first one is written: of a table, all.

    Raises:
        TypeError: It is none of these.
    """

    def __init__(self, data: Any) -> None:
        pa = pyarrow()
        self._batches: Iterator[Any]
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        if isinstance(data, pa.Table):
            self.schema, self.sample = data.schema, data
            self._batches = iter(data.to_batches())
            return
        reader = _reader(data)
        first = next(reader, None)
        if first is None and not hasattr(reader, "schema"):
            message = "there are no rows, and so no columns; pass a pyarrow.Table"
            raise TypeError(message)
        self.schema = reader.schema if first is None else first.schema
        known = [] if first is None else [first]
        self.sample = pa.Table.from_batches(known, self.schema)
        self._batches = chain(known, reader)

    def pieces(self) -> Iterator[Any]:
        """Yield all rows, in batches of limited size."""
        for batch in self._batches:
            if batch.schema.types != self.schema.types or batch.schema.names != self.schema.names:
                message = f"a batch has the columns {batch.schema}, but the first has {self.schema}"
                raise ValueError(message)
            size = batch.nbytes // max(1, batch.num_rows)
            step = max(1, min(_ROWS, _BYTES // max(1, size)))
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step)

    def values(self, path: Path) -> Iterator[Any]:
        """Yield the arrays of the sample at a path."""
        for chunk in self.sample.column(path[0]).chunks:
            yield values_at(chunk, path[1:])

    def has_nulls(self, path: Path) -> bool:
        """Return whether there are nulls in the sample."""
        return any(one.null_count for one in self.values(path))

    def has_values(self, path: Path) -> bool:
        """Return whether there is anything but nulls in the sample."""
        return any(valid(one).any() for one in self.values(path))


def _reader(data: Any) -> Any:
    """Return an iterator over batches."""
    pa = pyarrow()
    if isinstance(data, pa.RecordBatchReader):
        return data
    for name in ("scanner", "to_reader"):
        make: Callable[[], Any] | None = getattr(data, name, None)
        if make is not None:
            found = make()
            return found if isinstance(found, pa.RecordBatchReader) else found.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _flat(data)
    message = (
        "expected a pyarrow.Table, a RecordBatchReader or anything with __arrow_c_stream__, "
        f"got {type(data).__name__}"
    )
    raise TypeError(message)


def _flat(data: Iterable[Any]) -> Iterator[Any]:
    pa = pyarrow()
    for one in data:
        if isinstance(one, pa.Table):
            yield from one.to_batches()
        elif isinstance(one, pa.RecordBatch):
            yield one
        else:
            message = (
                "expected an iterable of pyarrow.RecordBatch or Table, got one of "
                f"{type(one).__name__}; ingot.from_generator takes rows"
            )
            raise TypeError(message)
