"""Arguments and options that commands share."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from ingot.cli.text import line

Source: TypeAlias = Annotated[
    str, typer.Argument(metavar="PATH", help="A file, a directory, or a pattern in quotes.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Full: TypeAlias = Annotated[
    bool, typer.Option("--full", help="Print arrays, bytes and long texts completely.")
]
Fields: TypeAlias = Annotated[
    list[str] | None, typer.Option("--field", "-f", help="A field to use; may be repeated.")
]
Where: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="CONDITION", help="Only rows that meet this, such as 'label == 3'."),
]
Types: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--spec", metavar="FIELD=TYPE", help="A field of SRC and its type; may be repeated."
    ),
]
Partial: TypeAlias = Annotated[
    bool, typer.Option("--partial", help="Read the committed part of an unfinished file.")
]
Overwrite: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing target once it is finished.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress and no summary.")
]


def types_of(given: list[str] | None) -> dict[str, str] | None:
    """Return fields and their types; None if there are none.

    Raises:
        ValueError: One has no type.
    """
    pairs = [one.rpartition("=") for one in given or ()]
    for name, _, kind in pairs:
        if not name or not kind:
            raise ValueError(f"--spec is FIELD=TYPE, such as label=int, got {name or kind!r}")
    return {name: kind for name, _, kind in pairs} or None


def write_json(content: Any) -> None:
    """Print an object on one line; what is not printable is escaped, as JSON has it."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False)
    if not text.isprintable():
        text = "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)
    sys.stdout.write(text + "\n")


def report(content: Any, text: str, *, as_json: bool, quiet: bool = False) -> None:
    """Print what a command has done: as JSON, or in words unless these are not wanted."""
    if as_json:
        write_json(content)
    elif not quiet:
        line(text)


def progress(*, quiet: bool) -> bool:
    """Whether to show progress: on a terminal, unless it is not wanted."""
    return not quiet and sys.stderr.isatty()


def shown(path: str | Path) -> str:
    """Return a path as the user may have typed it: relative, if it is below this folder."""
    whole = Path(path)
    here = Path.cwd()
    is_below = whole.is_relative_to(here) and whole != here
    return str(whole.relative_to(here)) if is_below else str(path)
