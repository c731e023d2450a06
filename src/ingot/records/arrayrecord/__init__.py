"""ArrayRecord files, with what users of ArrayRecord need. Others use `ingot.open`."""

from ingot.records.arrayrecord.options import parse_reader_options, parse_writer_options
from ingot.records.arrayrecord.reader import ArrayRecordReader
from ingot.records.arrayrecord.writer import ArrayRecordWriter

__all__ = [
    "ArrayRecordReader",
    "ArrayRecordWriter",
    "parse_reader_options",
    "parse_writer_options",
]
