"""A picture of the layout: what one row is made of, and how rows are spread over files."""

from collections.abc import Iterator

from ingot.cli.layout import FieldFigures, Layout, bar
from ingot.cli.text import size
from ingot.errors import counted

_WIDTH = 48
_FILES = 8


def picture_of(about: Layout) -> Iterator[tuple[str, str]]:
    """Yield the lines of the picture, with their styles."""
    if about.fields is not None and about.rows:
        yield from _row(about.fields, about.rows)
    elif about.rows and about.value_bytes is not None:
        yield f"a record: [ {size(about.value_bytes / about.rows)} on average ]", "cyan"
    noun = "record" if about.fields is None else "row"
    most = max((one.nbytes for one in about.files), default=0)
    for one in about.files[:_FILES]:
        rows = "" if one.rows is None else f", {counted(one.rows, noun)}"
        yield f"[{bar(one.nbytes / max(1, most), _WIDTH)}] {one.name}: {size(one.nbytes)}{rows}", ""
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
