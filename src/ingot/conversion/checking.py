"""The check of a target against its source, record by record."""

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ingot.conversion.ahead import Cuts, read_ahead
from ingot.conversion.content import Content, Piece, Records, Rows, block_of, content_of
from ingot.conversion.equality import difference
from ingot.conversion.sinks.ingot import stored
from ingot.conversion.sinks.sink import Stream
from ingot.dataset.spec import Spec, SpecLike
from ingot.errors import CorruptFileError
from ingot.opening import open as open_any
from ingot.records.progress import Report


def check_by_reading(
    path: Path,
    content: Content,
    *,
    workers: int,
    report: Report | None,
    spec: SpecLike | None = None,
) -> None:
    """Open what was written and compare it with the source.

    Args:
        path: The target.
        content: What was written.
        workers: The number of threads that read.
        report: Where progress goes.
        spec: The types of its fields, if the target does not tell them itself.

    Raises:
        CorruptFileError: A record differs, or cannot be read.
    """
    opened = open_any(path, spec=spec)
    try:
        written = content_of(opened, None)
        _check_count(path, len(content), len(written))
        read = _reader(content, written)
        with read_ahead(read, Cuts(len(content), 2 * content.nbytes), workers) as pieces:
            for rows, (expected, found) in pieces:
                where = difference(expected, found)
                if where is not None:
                    # Stored rows are compared many at a time: find the one.
                    one = _first(content, written, rows) if isinstance(written, Rows) else where
                    raise _differs(path, content, rows.start + one[0], one[1])
                if report is not None:
                    report(rows.stop, len(content))
    finally:
        opened.close()


def _reader(content: Content, written: Records | Rows) -> Callable[[range], tuple[Piece, Piece]]:
    spec = None
    if isinstance(written, Rows) and isinstance(content, Rows):
        ours, theirs = Spec(content.fields), Spec(written.fields)
        spec = ours if dict(ours) == dict(theirs) else None

    def read(rows: range) -> tuple[Piece, Piece]:
        if isinstance(written, Records):
            return block_of(content, rows), block_of(written, rows)
        if spec is not None:
            expected, found = stored(content, spec, rows), stored(written, spec, rows)
            if expected is not None and found is not None:
                return expected, found
        return content.read(rows), written.read(rows)

    return read


def _first(content: Content, written: Rows, rows: range) -> tuple[int, str | None]:
    for place, row in enumerate(rows):
        one = range(row, row + 1)
        expected, found = content.read(one), written.read(one)
        where = difference(expected, found)
        if where is not None:
            return place, where.field
    return 0, None


def check_by_encoding(
    path: Path, content: Content, sink: Stream, *, workers: int, report: Report | None
) -> None:
    """Encode the source again and compare with the bytes that are in the file.

    Raises:
        CorruptFileError: They differ.
    """
    done = 0
    cuts = Cuts(len(content), content.nbytes)

    def read(rows: range) -> Piece:
        return sink.read(content, rows)

    with path.open("rb") as file, read_ahead(read, cuts, workers) as pieces:
        for rows, piece in pieces:
            expected = sink.encode(rows, piece)
            if file.read(len(expected)) != expected:
                file.seek(done)
                raise _differs(path, content, _first_encoded(file, content, sink, rows), None)
            done += len(expected)
            if report is not None:
                report(rows.stop, len(content))
        expected = sink.end()
        if file.read(len(expected) + 1) != expected:
            message = f"{path.name}: the file does not end behind its last record"
            raise CorruptFileError(message, str(path), offset=done)


def _first_encoded(file: BinaryIO, content: Content, sink: Stream, rows: range) -> int:
    for row in rows:
        one = range(row, row + 1)
        expected = sink.encode(one, sink.read(content, one))
        if file.read(len(expected)) != expected:
            return row
    return rows.start


def _check_count(path: Path, expected: int, found: int) -> None:
    if expected != found:
        message = f"{path.name}: {found:,} of {expected:,} records were written"
        raise CorruptFileError(message, str(path))


def _differs(path: Path, content: Content, row: int, field: str | None) -> CorruptFileError:
    what = f"record {row}" if content.fields is None else f"row {row}"
    inside = "" if field is None else f": field {field!r}"
    message = (
        f"{path.name}: {what}{inside}: what was written differs from {content.path} when it is "
        "read back; nothing was put in place. Either the format cannot hold this value, and .ingot "
        "can, or the storage device is failing"
    )
    return CorruptFileError(message, str(path), row)
