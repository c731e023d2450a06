"""`ingot cat`: all rows, or a part of them."""

from typing import Annotated

import typer

from ingot.cli.files import content_at, rows_where
from ingot.cli.options import AsJson, Fields, Full, Partial, Source, Where
from ingot.cli.values import write_rows


def cat(
    path: Source,
    start: Annotated[int, typer.Option(min=0, help="The first row.")] = 0,
    stop: Annotated[int | None, typer.Option(min=0, help="The row behind the last.")] = None,
    field: Fields = None,
    where: Where = None,
    full: Full = False,
    partial: Partial = False,
    as_json: AsJson = False,
) -> None:
    """Print rows, one JSON value per line.

    Images, arrays and long texts are summarized; --full prints them. With --json a line is
    {"row": 0, "value": ...}.
    """
    with content_at(path, field, partial=partial) as content:
        last = len(content) if stop is None else min(stop, len(content))
        for rows in rows_where(content, where, range(start, max(start, last))):
            write_rows(content, rows, full=full, as_json=as_json)
