"""Rows to an HDF5 file: a data set for each field."""

from pathlib import Path

import numpy as np

from ingot.dataset.spec import Field
from ingot.formats.base.content import MEDIA, Content, Piece
from ingot.formats.base.sink import Sink, Writing, refuse
from ingot.formats.hdf5.file import h5py
from ingot.formats.hdf5.writer import Hdf5Writer, NewColumn

_TITLE = "an HDF5 file"


class Hdf5Sink(Sink):
    """Rows on their way to a file."""

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        super().__init__(path, content, options)
        fields = self._fields
        for field in fields.values():
            if "/" in field.name:
                refuse(field, _TITLE, "takes a slash for a group")
        self._bytes = {name for name, one in fields.items() if _is_bytes(one)}
        self._texts = [name for name, one in fields.items() if one.codec.name == "utf8"]
        self._writer = Hdf5Writer.create(path, [_column(one) for one in fields.values()])

    def add(self, rows: range, piece: Piece) -> None:
        """Append rows."""
        for name in self._texts:
            for row, text in zip(rows, piece[name], strict=True):
                if "\0" in text:
                    message = f"row {row}: field {name!r}: {_TITLE} cannot store text with NUL"
                    raise ValueError(message)
        batch = {
            name: [np.frombuffer(one, np.uint8) for one in values]
            if name in self._bytes
            else values
            for name, values in piece.items()
        }
        self._writer.write(batch)

    def finish(self) -> None:
        """Finish the file."""
        self._writer.finish()

    def abandon(self) -> None:
        """Stop writing."""
        self._writer.keep()


def _is_bytes(field: Field) -> bool:
    return field.codec.name == "bytes" or field.codec.name in MEDIA


def _column(field: Field) -> NewColumn:
    """Return the column of a field."""
    library, codec = h5py(), field.codec
    if field.is_optional:
        refuse(field, _TITLE, "has no missing values")
    if field.is_sequence and not field.is_number:
        refuse(field, _TITLE, "has sequences of numbers only")
    if field.is_sequence:
        return NewColumn(field.name, library.vlen_dtype(codec.dtype), ())
    if codec.dtype is not None:
        return NewColumn(field.name, codec.dtype, codec.shape)
    if codec.name == "utf8":
        return NewColumn(field.name, library.string_dtype(), ())
    if not _is_bytes(field):
        refuse(field, _TITLE, "has no such type")
    return NewColumn(field.name, library.vlen_dtype(np.uint8), ())
