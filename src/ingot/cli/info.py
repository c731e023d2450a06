"""`ingot info`: what is in a file or a data set, and how it is laid out."""

import math
from collections.abc import Iterator
from typing import Any

from ingot.cli.layout import FieldFigures, Layout, layout_of
from ingot.cli.options import AsJson, Partial, Source, shown, write_json
from ingot.cli.text import line, size, table
from ingot.errors import counted
from ingot.opening import open as open_any

_FILES = 8
_WIDTH = 48


def info(path: Source, partial: Partial = False, as_json: AsJson = False) -> None:
    """Show fields, rows, sizes, compression, files and the layout.

    Sizes of fields come from at most 10,000 rows that lie evenly across the data.
    """
    with open_any(path, partial=partial) as found:
        about = layout_of(found)
    if as_json:
        write_json(about.content())
        return
    line(f"{shown(about.path)}: {_title(about)}", "bold")
    if about.fields:
        rows = [
            (one.name, one.type, one.place, _about(one.nbytes), _share(one.nbytes, about))
            for one in about.fields
        ]
        table(("field", "type", "stored", "bytes", "share"), rows, right=(3, 4))
    for text, style in _picture_of(about):
        line(text, style)
    if about.metadata:
        line(f"metadata: {_shortened(about.metadata)}")
    if about.others:
        line(f"besides, with other numbers of rows: {', '.join(about.others)}")


def _title(about: Layout) -> str:
    rows = counted(about.rows, "row" if about.fields is not None else "record")
    words = [rows, f"{size(about.file_bytes)} in {counted(len(about.files), 'file')}"]
    if about.value_bytes and about.file_bytes:
        words.append(f"{about.file_bytes / about.value_bytes:.2f} of the size of the values")
    words.append(about.compression)
    if about.closed is False:
        words.append("not finished")
    return ", ".join(words)


def _about(nbytes: int | None) -> str:
    return "" if nbytes is None else size(nbytes)


def _share(nbytes: int | None, about: Layout) -> str:
    return "" if nbytes is None or not about.value_bytes else f"{nbytes / about.value_bytes:.1%}"


def _shortened(metadata: dict[str, Any]) -> str:
    text = repr(metadata)
    return text if len(text) <= 200 else f"{text[:200]}..."  # noqa: PLR2004


def _picture_of(about: Layout) -> Iterator[tuple[str, str]]:
    """Yield the lines of the picture, with their styles."""
    if about.fields is not None and about.rows:
        yield from _row(about.fields, about.rows)
    elif about.rows and about.value_bytes is not None:
        yield f"a record: [ {size(about.value_bytes / about.rows)} on average ]", "cyan"
    noun = "record" if about.fields is None else "row"
    most = max((one.nbytes for one in about.files), default=0)
    for one in about.files[:_FILES]:
        rows = "" if one.rows is None else f", {counted(one.rows, noun)}"
        yield (
            f"[{_bar(one.nbytes / max(1, most))}] {one.name}: {size(one.nbytes)}{rows}",
            "",
        )
    if len(about.files) > _FILES:
        yield f"and {len(about.files) - _FILES:,} more files", ""


def _row(fields: list[FieldFigures], rows: int) -> Iterator[tuple[str, str]]:
    def shown(places: set[str]) -> str:
        return "".join(f"[ {_field(one, rows)} ]" for one in fields if one.place in places)

    if cells := shown({"cell", "cells"}):
        yield f"a row:    {cells}", "cyan"
    if index := shown({"index"}):
        yield f"in index: {index}", "cyan"
    if columns := shown({"column"}):
        yield f"columns:  {columns}", "cyan"


def _field(field: FieldFigures, rows: int) -> str:
    nbytes = "" if field.nbytes is None else f" {size(field.nbytes / rows)}"
    return f"{field.name}{nbytes}{' ...' if field.place == 'cells' else ''}"


def _bar(share: float) -> str:
    """Return a bar of which a share is filled."""
    return ("#" * math.ceil(share * _WIDTH)).ljust(_WIDTH, ".")
