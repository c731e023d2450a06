"""`ingot head`: the first rows."""

from typing import Annotated

import typer

from ingot.cli.files import content_at, rows_where
from ingot.cli.options import AsJson, Fields, Full, Partial, Source, Where
from ingot.cli.values import write_rows


def head(
    path: Source,
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="How many rows.")] = 5,
    field: Fields = None,
    where: Where = None,
    full: Full = False,
    partial: Partial = False,
    as_json: AsJson = False,
) -> None:
    """Print the first rows, one JSON value per line.

    Images, arrays and long texts are summarized; --full prints them. With --json a line is
    {"row": 0, "value": ...}.
    """
    with content_at(path, field, partial=partial) as content:
        for rows in rows_where(content, where, range(len(content))):
            write_rows(content, rows[:count], full=full, as_json=as_json)
            count -= len(rows[:count])
            if count == 0:
                return
