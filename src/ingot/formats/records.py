"""Records to the formats that Ingot has native writers for."""

from pathlib import Path
from typing import Any, Protocol

from ingot.formats.arrayrecord import ArrayRecordWriter
from ingot.formats.bag import BagWriter
from ingot.formats.content import Content, Piece, block_of
from ingot.formats.ffrecord import FFRecordWriter
from ingot.formats.sink import Writing
from ingot.records import Batch, Writer


class _Writer(Protocol):
    def extend(self, records: Any) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> object: ...


class RecordSink:
    """Records on their way to one of the native writers."""

    def __init__(self, writer: _Writer) -> None:
        self._writer = writer

    def read(self, content: Content, rows: range) -> Piece:
        """Read records."""
        return content.read(rows)

    def add(self, rows: range, piece: Piece) -> None:
        """Append records."""
        del rows
        self._writer.extend(piece)

    def finish(self) -> None:
        """Finish the file."""
        self._writer.close()

    def abandon(self) -> None:
        """Stop writing."""
        self._writer.abandon()


class IngotRecords:
    """Records on their way to an Ingot file, in blocks; the file keeps the metadata."""

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        compression, metadata = options.compression, content.metadata
        self._writer = Writer(path, compression=compression, metadata=metadata, sync=options.sync)

    def read(self, content: Content, rows: range) -> Batch:
        """Read records into one block."""
        return block_of(content, rows)

    def add(self, rows: range, piece: Batch) -> None:
        """Append records."""
        self._writer.extend_packed([(piece.data.data, piece.offsets.tobytes(), None)], len(rows))

    def finish(self) -> None:
        """Finish the file."""
        self._writer.close()

    def abandon(self) -> None:
        """Stop writing."""
        self._writer.abandon()


def ffrecord(path: Path, content: Content, options: Writing) -> RecordSink:
    """Write an FFRecord file."""
    return RecordSink(FFRecordWriter(path, len(content), sync=options.sync))


def array_record(path: Path, content: Content, options: Writing) -> RecordSink:
    """Write an ArrayRecord file whose records can be read one by one."""
    del content
    return RecordSink(ArrayRecordWriter(path, sync=options.sync))


def bag(path: Path, content: Content, options: Writing) -> RecordSink:
    """Write a bag; `.bagz` compresses each record."""
    del content
    level = 0 if path.suffix.lower() == ".bagz" else None
    return RecordSink(BagWriter(path, level=level, sync=options.sync))
