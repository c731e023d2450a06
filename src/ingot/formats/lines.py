"""Rows to files of text, one line for each: what JSON lines and CSV share."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ingot._core import encode_lines
from ingot.dataset.spec import Field, Spec
from ingot.dataset.write.columns import encode
from ingot.dataset.write.packed import PackedField, PackedRows
from ingot.formats.content import Content
from ingot.formats.ingot.sink import stored
from ingot.formats.sink import Stream

_NAMES = {"bool": "bool", "float16": "float", "float64": "float", "int64": "int"}
"""The types that the numbers of a line are read as; others are `array(TYPE)`."""


class Lines(Stream):
    """Rows on their way to a file of lines, which the threads that read them encode.

    Args:
        path: The file.
        content: The rows.
        style: "json" or "csv".
        before: For each field, in the order of the line, what comes before its value.
        after: What ends a line.
    """

    def __init__(
        self, path: Path, content: Content, style: str, before: Mapping[str, str], after: str
    ) -> None:
        self._source = content.path
        self._spec = Spec(content.fields or {})
        self._style = style
        self._before = before
        self._after = after
        super().__init__(path)

    @property
    def spec(self) -> dict[str, str]:
        """The fields, each as the type that its text is read as."""
        return {name: _read_as(one) for name, one in self._spec.fields.items()}

    def read(self, content: Content, rows: range) -> bytes:
        """Read rows as lines.

        Raises:
            ValueError: A line cannot hold a value.
        """
        pieces = stored(content, self._spec, rows)
        if pieces is None:
            read = content.read(rows)
            pieces = [encode(self._spec, rows.start, read, check=False)]
        lines, first = [], rows.start
        for piece in pieces:
            lines.append(self._encoded(first, piece))
            first += piece.count
        return b"".join(lines)

    def encode(self, rows: range, piece: bytes) -> bytes:
        """Return the lines."""
        del rows
        return piece

    def _encoded(self, first: int, rows: PackedRows) -> bytes:
        stored_fields = [name for name, *_ in self._spec.stored()]
        found = dict(zip(stored_fields, rows.fields, strict=True))
        names = list(self._before)
        columns = [self._column(name, found[name], found.get(f"{name}?")) for name in names]
        lines = encode_lines(columns, rows.count, self._after, self._style)
        if isinstance(lines, bytes):
            return lines
        row, column, why = lines
        message = (
            f"{self._source}: row {first + row}: field {names[column]!r}: {why}; convert other "
            "rows, or other fields with names=, or convert to .ingot, which holds every value"
        )
        raise ValueError(message)

    def _column(self, name: str, values: PackedField, flags: PackedField | None) -> Any:
        field = self._spec.fields[name]
        codec = field.codec
        kind = "text" if codec.name == "utf8" else codec.name
        if codec.dtype is not None:
            kind = codec.dtype.name + "[]" * (field.is_sequence and field.is_number)
        present = b"" if flags is None else bytes(flags.data)
        data, offsets, counts = values
        return self._before[name], kind, codec.shape, data, offsets, counts, present


def _read_as(field: Field) -> str:
    """Return the type that `ingot.open` is asked for in the check."""
    codec, missing = field.codec, "?" * field.is_optional
    if codec.dtype is None:
        return "json" + missing if codec.name == "array" else field.type
    number = codec.dtype.name
    if codec.shape == ():
        return _NAMES.get(number, f"array({number})") + "[]" * field.is_sequence + missing
    if len(codec.shape) > 1 or number == "float16":
        return "json" + missing
    return f"array({number},{codec.shape[0]})" + "[]" * field.is_sequence + missing
