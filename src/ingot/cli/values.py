"""Values as JSON: summaries of what is large, or all of it."""

import base64
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ingot.cli.options import write_json
from ingot.dataset.nested import deep
from ingot.dataset.spec import Field
from ingot.formats.base.content import MEDIA, Content
from ingot.records.indices import Numbers

_TEXT = 200
_BYTES = 16
_ELEMENTS = 8
_ROWS = 64


def write_rows(content: Content, rows: range | Numbers, *, full: bool, as_json: bool) -> None:
    """Print records or rows, one JSON value per line; with their numbers for `--json`."""
    for number, value in _rows_of(content, rows, full=full):
        write_json({"row": number, "value": value} if as_json else value)


def _rows_of(content: Content, rows: range | Numbers, *, full: bool) -> Iterator[tuple[int, Any]]:
    """Yield numbers and values of records or rows, as JSON has them."""
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        piece = content.read(some)
        for place, number in enumerate(some):
            yield int(number), _row(content, piece, place, full=full)


def _row(content: Content, piece: Any, place: int, *, full: bool) -> Any:
    if content.fields is None:
        return plain(piece[place], full=full)
    fields = content.fields
    return deep({name: _value(fields[name], piece[name][place], full=full) for name in fields})


def _value(field: Field, value: Any, *, full: bool) -> Any:
    """Return a value; the bytes of files are told by their type."""
    if field.codec.name not in MEDIA or value is None:
        return plain(value, full=full)
    kind = {"type": field.codec.name}
    if isinstance(value, list | tuple):
        each = [kind | _bytes(one, full=full) for one in value]
        return _several(each, len(each), full=full)
    return kind | _bytes(value, full=full)


def plain(value: Any, *, full: bool) -> Any:
    """Return a value as JSON has it.

    Large values are summarized, unless `full` is given: an array as
    `{"array": dtype, "shape": [...], "min": ..., "max": ...}`, bytes as
    `{"bytes": length, "text" or "hex": the beginning}`, long text as
    `{"length": ..., "text": the beginning}`, a long list as
    `{"length": ..., "first": [...]}`.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return _array(value, full=full)
    if isinstance(value, Mapping):
        return {str(key): plain(one, full=full) for key, one in value.items()}
    if isinstance(value, list | tuple):
        shown = value if full else value[:_ELEMENTS]
        return _several([plain(one, full=full) for one in shown], len(value), full=full)
    return _bytes(value, full=full) if isinstance(value, bytes) else _single(value, full=full)


def _single(value: Any, *, full: bool) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str) and len(value) > _TEXT and not full:
        return {"length": len(value), "text": value[:_TEXT]}
    return value if isinstance(value, int | str | None) else str(value)


def _several(shown: list[Any], count: int, *, full: bool) -> Any:
    return shown if full or count <= _ELEMENTS else {"length": count, "first": shown[:_ELEMENTS]}


def _bytes(value: bytes, *, full: bool) -> dict[str, Any]:
    if full:
        return {"bytes": len(value), "base64": base64.b64encode(value).decode()}
    try:
        text = value[:_TEXT].decode()
    except UnicodeDecodeError:
        text = "\0"
    if text.isprintable():
        return {"bytes": len(value), "text": text}
    return {"bytes": len(value), "hex": value[:_BYTES].hex()}


def _array(value: np.ndarray[Any, Any], *, full: bool) -> Any:
    about: dict[str, Any] = {"array": str(value.dtype), "shape": list(value.shape)}
    if full:
        return about | {"values": _listed(value.tolist())}
    if value.size and value.size <= _ELEMENTS:
        return about | {"values": _listed(value.tolist())}
    if value.size and value.dtype.kind in "biuf":
        return about | {"min": plain(value.min(), full=True), "max": plain(value.max(), full=True)}
    return about


def _listed(value: Any) -> Any:
    return [_listed(one) for one in value] if isinstance(value, list) else plain(value, full=True)
