"""TFRecord files, read with Beam's parser; errors name record and offset."""

import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from apache_beam.io.filesystems import FileSystems
from apache_beam.io.tfrecordio import _TFRecordUtil as Records

from ingot.beam.transfer import PIECE_BYTES
from ingot.errors import CorruptFileError


class _Pieces:
    """Reads a file in pieces, so that a wrong length does not exhaust memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        if size <= PIECE_BYTES:
            return self._file.read(size)
        parts = []
        while size and (part := self._file.read(min(size, PIECE_BYTES))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def read_tfrecord(path: str) -> Iterator[bytes]:
    """Yield the records of a TFRecord file, in order, decompressed according to its suffix.

    Raises:
        CorruptFileError: A checksum or a length is wrong.
    """
    number = offset = 0
    with FileSystems.open(path) as file:
        pieces = _Pieces(file)
        while True:
            try:
                record = Records.read_record(pieces)
            except (ValueError, zlib.error) as error:
                message = f"{path}: record {number} at offset {offset}: {error}"
                raise CorruptFileError(message, path, number, offset) from error
            if record is None:
                return
            yield record
            number += 1
            offset += Records.encoded_num_bytes(record)


def write_tfrecord(path: str, records: Iterable[bytes]) -> None:
    """Write a TFRecord file, compressed according to its suffix."""
    with FileSystems.create(path) as file:
        for record in records:
            Records.write_record(file, record)
