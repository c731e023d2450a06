"""The check of a target against its source, record by record."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ingot.dataset import Dataset
from ingot.dataset.read.ahead import Ranges, ReadAhead
from ingot.dataset.spec import Spec
from ingot.dataset.write.copying import PackedRows
from ingot.errors import CorruptFileError, FormatError
from ingot.formats.base.content import (
    Columns,
    Content,
    Piece,
    Records,
    Rows,
    block_of,
    content_of,
    pace_of,
)
from ingot.formats.base.sink import Sink, Stream, Writing
from ingot.opening import open as open_any
from ingot.opening import open_dataset, open_records
from ingot.records import Batch, Reader

_INDEX = "index"


def check(path: Path, content: Content, sink: Sink | None, options: Writing) -> None:
    """Open what was written and compare it with the source.

    Args:
        path: What was written.
        content: The source.
        sink: What has written it; None for a data set directory.
        options: How many threads read, and where progress goes.

    Raises:
        CorruptFileError: A record differs, or cannot be read.
    """
    stream, report = sink if isinstance(sink, Stream) else None, options.report("checked")
    try:
        opened = _opened(path, stream)
    except FormatError as error:
        message = f"{path.name}: what was written cannot be read: {error}"
        raise CorruptFileError(message, str(path)) from error
    with closing(opened):
        written = content_of(opened, None)
        if len(content) != len(written):
            message = f"{path.name}: {len(written):,} of {len(content):,} records were written"
            raise CorruptFileError(message, str(path))
        read = _reader(content, written, stream)
        pace = pace_of(len(content), 2 * content.nbytes)
        with ReadAhead(read, Ranges(range(len(content))).take, pace, options.threads) as pieces:
            for rows, (expected, found) in pieces:
                where = difference(expected, found)
                if where is not None:
                    # Stored rows are compared many at a time: find the one.
                    one = _first(read, rows) if isinstance(written, Rows) else where
                    raise _differs(path, content, rows.start + one[0], one[1])
                if report is not None:
                    report(rows.stop, len(content))


def _opened(path: Path, stream: Stream | None) -> Reader | Dataset:
    if stream is None:
        found: Reader | Dataset = open_any(path)
        return found
    if stream.has_records:
        return open_records(path)
    # The index is in the folder of the draft, too.
    return open_dataset(path, spec=stream.spec, index_dir=path.with_name(_INDEX))


def _reader(
    content: Content, written: Records | Rows, stream: Stream | None
) -> Callable[[range], tuple[Piece, Piece]]:
    spec = None
    if stream is None and isinstance(written, Rows) and isinstance(content, Rows):
        ours, theirs = Spec(content.fields), Spec(written.fields)
        spec = ours if dict(ours) == dict(theirs) else None

    def read(rows: range) -> tuple[Piece, Piece]:
        if isinstance(written, Records):
            return block_of(content, rows), block_of(written, rows)
        if spec is not None and len(rows) > 1:
            expected, found = content.packed(spec, rows), written.packed(spec, rows)
            if expected is not None and found is not None:
                return expected, found
        piece = content.read(rows)
        return piece if stream is None else stream.expected(piece), written.read(rows)

    return read


def _first(read: Callable[[range], tuple[Piece, Piece]], rows: range) -> tuple[int, str | None]:
    for place, row in enumerate(rows):
        where = difference(*read(range(row, row + 1)))
        if where is not None:
            return place, where.field
    return 0, None


def _differs(path: Path, content: Content, row: int, field: str | None) -> CorruptFileError:
    what = f"record {row}" if content.fields is None else f"row {row}"
    inside = "" if field is None else f": field {field!r}"
    message = (
        f"{path.name}: {what}{inside}: what was written differs from {content.path} when it is "
        "read back; nothing was put in place. Either the format cannot hold this value, and .ingot "
        "can, or the storage device is failing"
    )
    return CorruptFileError(message, str(path), row)


class Difference(NamedTuple):
    """Where two pieces differ.

    Attributes:
        row: The row, counted from the first of the piece.
        field: The field; None for records.
    """

    row: int
    field: str | None


def difference(expected: Piece, found: Piece) -> Difference | None:
    """Return the first place where two pieces differ; None if they are the same."""
    if isinstance(expected, dict):
        return _columns(expected, found if isinstance(found, dict) else {})
    if isinstance(expected, Batch):
        return _batches(expected, found)
    if expected == found:
        return None
    for k, (one, other) in enumerate(zip(expected, found, strict=False)):
        if isinstance(one, PackedRows):
            if not isinstance(other, PackedRows) or not _same_packed(one, other):
                return Difference(k, None)
        elif one != other:
            return Difference(k, None)
    return None if len(expected) == len(found) else Difference(min(len(expected), len(found)), None)


def _batches(expected: Batch, found: Batch) -> Difference | None:
    ends = int(expected.offsets[-1])
    if np.array_equal(expected.offsets, found.offsets) and np.array_equal(
        expected.data[:ends], found.data[:ends]
    ):
        return None
    each = enumerate(zip(expected, found, strict=True))
    return next(Difference(k, None) for k, (one, other) in each if not np.array_equal(one, other))


def _same_packed(one: PackedRows, other: PackedRows) -> bool:
    def content(rows: PackedRows) -> list[tuple[memoryview, bytes, bytes | None]]:
        ends = [int(np.frombuffer(field.offsets, np.int64)[-1]) for field in rows.fields]
        each = zip(rows.fields, ends, strict=True)
        return [(memoryview(field.data)[:end], field.offsets, field.counts) for field, end in each]

    return one.count == other.count and content(one) == content(other)


def _columns(expected: Columns, found: Columns) -> Difference | None:
    places = [
        Difference(row, name)
        for name, values in expected.items()
        if (row := _first_difference(values, found.get(name))) is not None
    ]
    return min(places, default=None)


def _first_difference(expected: Any, found: Any) -> int | None:
    if found is None:
        return 0
    if isinstance(expected, np.ndarray) and isinstance(found, np.ndarray) and same(expected, found):
        return None
    each = enumerate(zip(expected, found, strict=False))
    short = min(len(expected), len(found)) if len(expected) != len(found) else None
    return next((k for k, (one, other) in each if not same(one, other)), short)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same, as different formats return them.

    A number equals an array without dimensions, bytes equal a run of bytes, a list of numbers
    equals an array of them, an empty list equals no arrays of any shape, and NaN equals NaN.
    """
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return _are_empty(one, other) or _same_arrays(_array(one), _array(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float | np.floating) and isinstance(other, float | np.floating):
        return bool(np.array_equal(one, other, equal_nan=True))
    return bool(one == other)


def _are_empty(one: Any, other: Any) -> bool:
    """Return whether one is an empty list, and the other one no arrays at all."""
    has_list = isinstance(one, list) or isinstance(other, list)
    return has_list and np.ndim(one) > 0 and np.ndim(other) > 0 and len(one) == len(other) == 0


def _array(value: Any) -> Any:
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    return np.asarray(value)


def _same_arrays(one: Any, other: Any) -> bool:
    if one.shape != other.shape:
        return False
    if one.size == 0 or one.dtype.kind == other.dtype.kind == "O":
        return bool(np.array_equal(one, other))
    if one.dtype.kind != other.dtype.kind and not {one.dtype.kind, other.dtype.kind} <= set("iu"):
        return False
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
