"""`ingot convert`: from any format to any other."""

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from ingot.cli.files import source_where
from ingot.cli.options import (
    AsJson,
    Fields,
    Overwrite,
    Quiet,
    Types,
    Where,
    progress,
    shown,
    types_of,
    write_json,
)
from ingot.cli.text import line, size
from ingot.conversion import Conversion
from ingot.conversion import convert as convert_source
from ingot.errors import counted
from ingot.formats.table import FORMATS

_WRITTEN = [one.name for one in FORMATS if one.is_written]

ShardBytes = Annotated[
    str, typer.Option(help="The size of the files in a data set directory, such as 256MB.")
]
Compress = Annotated[
    Literal["auto", "zstd", "lz4", "none"], typer.Option(help="How Ingot files are compressed.")
]
Check = Annotated[
    bool, typer.Option("--check/--no-check", help="Compare the target with the source.")
]
Workers = Annotated[
    int | None, typer.Option(min=0, help="Processes for a directory, threads for a file.")
]


def convert(
    src: Annotated[str, typer.Argument(metavar="SRC", help="What to convert.")],
    dst: Annotated[
        str, typer.Argument(metavar="DST", help="The target; its suffix tells the format.")
    ],
    format: Annotated[  # noqa: A002 -- the name of the option
        str | None,
        typer.Option(help=f"Of the target: {', '.join(_WRITTEN)}."),
    ] = None,
    field: Fields = None,
    where: Where = None,
    spec: Types = None,
    shard_bytes: ShardBytes = "1GB",
    compression: Compress = "auto",
    check: Check = True,
    workers: Workers = None,
    overwrite: Overwrite = False,
    resume: Annotated[
        bool, typer.Option("--resume/--restart", help="Continue an interrupted conversion.")
    ] = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Copy records or rows to another format, and check the result.

    A DST without a suffix is a data set directory.
    """
    with source_where(src, where, types_of(spec)) as (source, types):
        done = convert_source(
            source,
            dst,
            format=format,
            names=field,
            spec=types,
            shard_bytes=shard_bytes,
            compression=None if compression == "none" else compression,
            check=check,
            workers=workers,
            overwrite=overwrite,
            resume=resume,
            progress=progress(quiet=quiet),
        )
    tell_conversion(done, as_json=as_json, quiet=quiet)


def tell_conversion(done: Conversion, *, as_json: bool, quiet: bool) -> None:
    """Print what was written."""
    if as_json:
        write_json(asdict(done))
        return
    if not quiet:
        checked = "checked against the source" if done.checked else "not checked"
        rows = counted(done.rows, "row")
        line(f"{shown(done.path)}: {rows}, {size(done.nbytes)}, {checked}")
    if done.left_out:
        line(f"left out, because they have another number of rows: {', '.join(done.left_out)}")
    if done.rounded:
        line(f"rounded to 32 bits, which is what the format has: {', '.join(done.rounded)}")
