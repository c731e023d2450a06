"""Sinks for records, over the native writers."""

from pathlib import Path
from typing import Any

from ingot.formats.arrayrecord import ArrayRecordWriter
from ingot.formats.bag import BagWriter
from ingot.formats.base.content import Content, Piece, block_of
from ingot.formats.base.sink import Sink, Writing
from ingot.formats.ffrecord import FFRecordWriter
from ingot.records import Batch, Writer


class RecordSink(Sink):
    """Records on their way to one of the native writers."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def add(self, rows: range, piece: Piece) -> None:
        """Append records."""
        del rows
        self._writer.extend(piece)


class IngotRecords(Sink):
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
