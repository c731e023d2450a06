"""Rows to a folder of Granular."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ingot.codecs.array import FixedArray
from ingot.dataset.spec import Field
from ingot.errors import FormatError
from ingot.formats.base.content import MEDIA, Content, Piece
from ingot.formats.base.sink import Sink, Writing, refuse
from ingot.formats.granular.codecs import ENCODERS
from ingot.formats.granular.writer import open_writer

_TITLE = "a Granular data set"
_SAME = frozenset({"array", "bytes", "int", "jpg", "mp4", "msgpack", "png", "tree", "utf8"})
_TYPES = {
    "bool": "array",
    "flac": "bytes",
    "float": "array",
    "json": "msgpack",
    "wav": "bytes",
    "webp": "bytes",
}
_Encoder: TypeAlias = Callable[[Any], bytes]


class GranularSink(Sink):
    """Rows on their way to a folder."""

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        super().__init__(path, content, options)
        fields = self._fields
        self._encoders = {name: _encoder(one) for name, one in fields.items()}
        self._sequences = {name for name, one in fields.items() if one.is_sequence}
        types = {name: _type(one) + "[]" * one.is_sequence for name, one in fields.items()}
        self._writer = open_writer(path, types)

    def add(self, rows: range, piece: Piece) -> None:
        """Append rows."""
        columns = [self._encoded(name, values, rows) for name, values in piece.items()]
        for values in zip(*columns, strict=True):
            self._writer.append(dict(zip(piece, values, strict=True)))

    def _encoded(self, name: str, values: Any, rows: range) -> list[Any]:
        encode = self._encoders[name]
        found: list[Any] = []
        try:
            for value in values:
                is_many = name in self._sequences
                found.append([encode(one) for one in value] if is_many else encode(value))
        except (OverflowError, TypeError, ValueError) as error:
            message = (
                f"{self._source}: row {rows[len(found)]}: field {name!r}: {_TITLE} has no such "
                f"value: {error}; name the fields to convert with names=, or convert to .ingot"
            )
            raise FormatError(message, self._source) from error
        return found

    def abandon(self) -> None:
        """Close the files; the folder is not finished, and its caller removes it."""
        self._writer.close()


def _type(field: Field) -> str:
    if field.is_optional:
        refuse(field, _TITLE, "has no missing values")
    name = "array" if isinstance(field.codec, FixedArray) else field.codec.name
    found = name if name in _SAME else _TYPES.get(name)
    if found is None:
        refuse(field, _TITLE, "has no such type")
    return found


def _encoder(field: Field) -> _Encoder:
    if field.codec.name == "tree":
        return _tree
    return bytes if field.codec.name in MEDIA else ENCODERS[_type(field)]


def _tree(value: Any) -> bytes:
    _check_tree(value)
    return ENCODERS["tree"](value)


def _check_tree(value: Any) -> None:
    """Refuse tuples, which would come back as lists."""
    if isinstance(value, tuple):
        message = f"a tuple would come back as a list: {value!r:.80}"
        raise TypeError(message)
    if isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            _check_tree(one)
