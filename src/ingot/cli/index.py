"""`ingot index`: the indexes of files of other formats."""

from typing import Annotated

import typer

from ingot.cli.options import AsJson, Source, report
from ingot.dataset import Dataset
from ingot.dataset.read.dataset import selection_of
from ingot.errors import counted
from ingot.formats.table import format_named, format_of
from ingot.opening import open as open_any
from ingot.records import Reader


def index(
    path: Source,
    directory: Annotated[
        str | None,
        typer.Option("--dir", help="The directory for the indexes; else the user's cache."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Build the indexes of files of other formats, unless they are there and up to date.

    Opening the files does that too; so this is for doing it once, before many processes open them.
    """
    with open_any(path, index_dir=directory) as opened:
        rows = len(opened)
        num_indexes = _num_indexes(opened)
    content = {"path": opened.path, "rows": rows, "indexes": num_indexes}
    report(content, f"{path}: {counted(rows, 'row')}, {_state(num_indexes)}", as_json=as_json)


def _num_indexes(opened: Reader | Dataset) -> int:
    if not isinstance(opened, Dataset):
        formats = map(format_of, opened.paths)
        return sum(one is not None and one.is_indexed for one in formats)
    found = format_named(selection_of(opened).source.format)
    return len(opened.paths) if found.is_indexed else 0


def _state(num_indexes: int) -> str:
    if not num_indexes:
        return "this format needs no index"
    many = f"{num_indexes:,} indexes are" if num_indexes > 1 else "the index is"
    return f"{many} up to date"
