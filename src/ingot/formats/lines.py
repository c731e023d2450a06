"""JSON lines and CSV: a line of text for each row."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ingot._core import encode_lines
from ingot.dataset.nested import deep
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.spec import Field, Spec
from ingot.dataset.write.packed import PackedField, PackedRows
from ingot.formats.base.content import Content
from ingot.formats.base.indexed import open_indexed
from ingot.formats.base.options import Options
from ingot.formats.base.sink import Stream, Writing, refuse

_NAMES = {"bool": "bool", "float16": "float", "float64": "float", "int64": "int"}
"""The types that the numbers of a line are read as; others are `array(TYPE)`."""


def open_jsonlines(paths: Sequence[str], name: str, options: Options) -> IngotSource | None:
    """Open files of JSON lines; return None if no line tells their fields."""
    return open_indexed("jsonlines", paths, name, options)


def open_csv(paths: Sequence[str], name: str, options: Options) -> IngotSource | None:
    """Open CSV files; the first row has the names of the fields.

    Raises:
        ValueError: The separator is not one ASCII character.
    """
    separator = options.separator
    if separator is None:
        return open_indexed("csv", paths, name, options)
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        message = f"separator={separator!r}: expected one ASCII character, such as ';'"
        raise ValueError(message)
    return open_indexed("csv", paths, name, options, separator=separator)


class Lines(Stream):
    """Rows on their way to a file of lines, which the threads that read them encode.

    Attributes:
        title: What a user calls such a file, with an article.
        style: "json" or "csv".
    """

    title: str
    style: str

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        super().__init__(path, content, options)
        self._spec = Spec(self._fields)
        self._before: dict[str, str] = {}  # Before the value of each field, in their order.
        self._after = "\n"
        for field in self._fields.values():
            if field.codec.dtype is not None and field.codec.dtype.kind == "c":
                refuse(field, self.title, "has no complex numbers")

    @property
    def spec(self) -> dict[str, str]:
        """The fields, each as the type that its text is read as."""
        return {name: _read_as(one) for name, one in self._spec.fields.items()}

    def read(self, content: Content, rows: range) -> bytes:
        """Read rows as lines.

        Raises:
            ValueError: A line cannot hold a value.
        """
        lines, first = [], rows.start
        for piece in content.encoded(self._spec, rows):
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
        lines = encode_lines(columns, rows.count, self._after, self.style)
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


class JsonLines(Lines):
    """Rows on their way to JSON lines: an object for each, in which groups of fields nest."""

    title = "a file of JSON lines"
    style = "json"

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        super().__init__(path, content, options)
        for field in self._fields.values():
            if field.codec.dtype is None and field.codec.name not in {"array", "json", "utf8"}:
                refuse(field, self.title, "has numbers, text, lists and JSON only")
        names = deep({name: name for name in self._fields})
        self._after = _nest(names, "", self._before) + "\n"


def _nest(names: Mapping[str, Any], text: str, before: dict[str, str]) -> str:
    """Note what comes before the value of each field; return what comes after the last.

    Args:
        names: Keys and the full names of their fields, or further such mappings.
        text: What comes before the object.
        before: Where to note it.
    """
    text += "{"
    for key, inner in names.items():
        text += f"{json.dumps(key, ensure_ascii=False)}:"
        if isinstance(inner, str):
            before[inner], text = text, ""
        else:
            text = _nest(inner, text, before)
        text += ","
    return f"{text.removesuffix(',')}}}"


class Csv(Lines):
    """Rows on their way to a CSV file: text in quotes, everything else without."""

    title = "a CSV file"
    style = "csv"

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        super().__init__(path, content, options)
        for field in self._fields.values():
            if field.is_sequence or not (field.is_number or field.codec.name == "utf8"):
                refuse(field, self.title, "has single numbers and text only")
            if field.name != field.name.strip():
                refuse(field, self.title, "has no names that begin or end with a space")
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        self._before = {name: separator if k else "" for k, name in enumerate(self._fields)}
        names = [name.replace('"', '""') for name in self._fields]
        names = [f'"{name}"' if separator in name or '"' in name else name for name in names]
        self._write(f"{separator.join(names)}\n".encode())
