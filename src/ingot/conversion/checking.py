"""The check of a target against its source, record by record."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from ingot.conversion.equality import difference
from ingot.dataset import Dataset
from ingot.dataset.read.iteration import Ranges, ReadAhead
from ingot.dataset.spec import Spec
from ingot.errors import CorruptFileError, FormatError
from ingot.formats.content import Content, Piece, Records, Rows, block_of, content_of, pace_of
from ingot.formats.ingot.sink import stored
from ingot.formats.sink import Sink, Stream
from ingot.opening import open as open_any
from ingot.opening import open_dataset, open_records
from ingot.records import Reader
from ingot.records.progress import Report

_INDEX = "index"


def check(
    path: Path, content: Content, sink: Sink | None, *, workers: int, report: Report | None
) -> None:
    """Open what was written and compare it with the source.

    Args:
        path: What was written.
        content: The source.
        sink: What has written it; None for a data set directory.
        workers: How many threads read.
        report: Called with the records done.

    Raises:
        CorruptFileError: A record differs, or cannot be read.
    """
    stream = sink if isinstance(sink, Stream) else None
    try:
        opened = _opened(path, stream)
    except FormatError as error:
        message = f"{path.name}: what was written cannot be read: {error}"
        raise CorruptFileError(message, str(path)) from error
    with closing(opened):
        written = content_of(opened, None)
        _check_count(path, len(content), len(written))
        read = _reader(content, written, stream)
        pace = pace_of(len(content), 2 * content.nbytes)
        with ReadAhead(read, Ranges(range(len(content))).take, pace, workers) as pieces:
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
            expected, found = stored(content, spec, rows), stored(written, spec, rows)
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
