"""A data set as a notebook shows it: its fields, and its first rows with thumbnails."""

import base64
import io
import reprlib
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ingot.dataset.nested import at
from ingot.errors import IngotError, counted, printable

if TYPE_CHECKING:
    from ingot.dataset.read.dataset import Dataset

_ROWS = 5
_ELEMENTS = 4
_TEXT = 60
_HEIGHT = 64
_STYLE = "text-align:left;vertical-align:top"


def html_of(rows: "Dataset") -> str:
    """Return a table of the first rows."""
    heads = "".join(
        f'<th style="{_STYLE}">{escape(name)}<br><small>{escape(kind)}</small></th>'
        for name, kind in rows.spec.items()
    )
    body = "".join(
        f"<tr><th>{k}</th>"
        + "".join(f'<td style="{_STYLE}">{_cell(rows, k, name)}</td>' for name in rows.spec)
        + "</tr>"
        for k in range(min(_ROWS, len(rows)))
    )
    return (
        f"<p>ingot.Dataset: {counted(len(rows), 'row')}, {rows.nbytes:,} bytes of files</p>"
        f"<table><thead><tr><th></th>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(rows: "Dataset", number: int, name: str) -> str:
    """Return a value, or what is wrong with it: others are shown all the same."""
    try:
        return _value(at(rows[number, [name]], name))
    except (IngotError, ImportError, RecursionError) as error:
        return f"<em>{escape(printable(_short(str(error))))}</em>"


def _short(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"


def _value(value: Any, *, inside: bool = False) -> str:
    if isinstance(value, np.ndarray):
        return _picture(value) if _is_picture(value) else escape(_array(value))
    if isinstance(value, list) and not inside:
        more = f" <small>{len(value):,} in all</small>" if len(value) > _ELEMENTS else ""
        return " ".join(_value(one, inside=True) for one in value[:_ELEMENTS]) + more
    if isinstance(value, bytes):
        return escape(f"{len(value):,} bytes")
    text = value if isinstance(value, str) else reprlib.repr(value)
    return escape(printable(_short(text)))


def _array(value: npt.NDArray[Any]) -> str:
    if value.size <= _ELEMENTS:
        return f"{value.dtype} {value.tolist()}"
    return f"{value.dtype} {' x '.join(map(str, value.shape))}"


def _is_picture(value: npt.NDArray[Any]) -> bool:
    colours = value.shape[2:]
    return (
        value.dtype == np.uint8
        and value.ndim in (2, 3)
        and colours in ((), (1,), (3,), (4,))
        and min(value.shape[:2]) > 1
        and find_spec("PIL") is not None
    )


def _picture(value: npt.NDArray[np.uint8]) -> str:
    height, width = value.shape[:2]
    step = max(1, max(height, width) // (2 * _HEIGHT))
    small = np.ascontiguousarray(value[::step, ::step])
    stream = io.BytesIO()
    image = import_module("PIL.Image")
    image.fromarray(small[:, :, 0] if small.shape[2:] == (1,) else small).save(stream, "PNG")
    data = base64.b64encode(stream.getvalue()).decode()
    size = f"{height} x {width}"
    return f'<img src="data:image/png;base64,{data}" height="{_HEIGHT}" title="{size}">'
