"""The check of a target against its source, record by record."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from ingot.dataset import Dataset
from ingot.dataset.read.iteration import Ranges, ReadAhead
from ingot.dataset.spec import Spec
from ingot.dataset.write.packed import PackedRows
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
        options: How many threads read, and what progress is reported to.

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
                if not _are_same(expected, found):
                    raise _differs(path, content, *_first(read, rows))
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
    """Return the first row that differs, and in which field; pieces have many rows."""
    for row in rows:
        expected, found = read(range(row, row + 1))
        if not _are_same(expected, found):
            names = _differing(expected, found) if isinstance(expected, dict) else []
            return row, min(names, default=None)
    return rows.start, None


def _differs(path: Path, content: Content, row: int, field: str | None) -> CorruptFileError:
    what = f"record {row}" if content.fields is None else f"row {row}"
    inside = "" if field is None else f": field {field!r}"
    message = (
        f"{path.name}: {what}{inside}: what was written differs from {content.path} when it is "
        "read back; nothing was put in place. Either the format cannot hold this value, and .ingot "
        "can, or the storage device is failing"
    )
    return CorruptFileError(message, str(path), row)


def _are_same(expected: Piece, found: Piece) -> bool:
    if isinstance(expected, dict):
        return not _differing(expected, found)
    if isinstance(expected, Batch):
        end = int(expected.offsets[-1])
        is_alike = np.array_equal(expected.offsets, found.offsets)
        return is_alike and np.array_equal(expected.data[:end], found.data[:end])
    return len(expected) == len(found) and all(map(_same_packed, expected, found))


def _differing(expected: Columns, found: Columns) -> list[str]:
    """Return the fields whose values differ."""
    each = ((name, values, found.get(name)) for name, values in expected.items())
    return [name for name, values, others in each if not _same_values(values, others)]


def _same_values(expected: Any, found: Any) -> bool:
    if found is None or len(expected) != len(found):
        return False
    is_array = isinstance(expected, np.ndarray) and isinstance(found, np.ndarray)
    return (is_array and same(expected, found)) or all(map(same, expected, found))


def _same_packed(one: PackedRows, other: PackedRows) -> bool:
    def content(rows: PackedRows) -> list[tuple[memoryview, bytes, bytes | None]]:
        ends = [int(np.frombuffer(field.offsets, np.int64)[-1]) for field in rows.fields]
        each = zip(rows.fields, ends, strict=True)
        return [(memoryview(field.data)[:end], field.offsets, field.counts) for field, end in each]

    return one.count == other.count and content(one) == content(other)


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
