"""`ingot split`: parts of a source, each as a target of its own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ingot.cli.convert import Check, Compress, ShardBytes
from ingot.cli.options import (
    AsJson,
    Fields,
    Overwrite,
    Quiet,
    Source,
    progress,
    shown,
    write_json,
)
from ingot.cli.text import line
from ingot.conversion.convert import check_apart, fitting, paths_of, transfer
from ingot.conversion.draft import check_target
from ingot.dataset import Dataset
from ingot.dataset.write.shards import limits
from ingot.errors import counted
from ingot.formats.base.sink import Writing
from ingot.formats.table import target_format
from ingot.opening import open as open_any
from ingot.records import View
from ingot.records.expand import absolute


def split(
    path: Source,
    parts: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET=SIZE", help="Such as train=0.9 test.ingot=0.1, or train=5000."
        ),
    ],
    seed: Annotated[int, typer.Option(help="Which rows go where, at random.")] = 0,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Cut into consecutive rows instead.")
    ] = False,
    field: Fields = None,
    shard_bytes: ShardBytes = "1GB",
    compression: Compress = "auto",
    check: Check = True,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Split rows or records into several targets.

    Sizes are fractions, or numbers of rows. Each part keeps the order of the source. Rows
    behind the last part are left out.
    """
    targets, sizes = zip(*map(_part, parts), strict=True)
    for target in targets:
        if targets.count(target) > 1:
            message = f"{shown(target)}: a target appears twice; name another one for each part"
            raise ValueError(message)
    shard, _ = limits(shard_bytes, None)
    chosen = None if compression == "none" else compression
    job = Writing(
        compression=chosen,
        shard_bytes=shard or 0,
        check=check,
        workers=0,
        resume=False,
        progress=progress(quiet=quiet),
    )
    with open_any(path) as found:
        sources = paths_of(path, found)
        for target in targets:
            check_apart(sources, target)
            check_target(target, overwrite=overwrite)
        formats = [target_format(target, None) for target in targets]
        pieces: Sequence[View | Dataset] = found.split(*sizes, seed=None if in_order else seed)
        contents = [fitting(piece, one, field) for piece, one in zip(pieces, formats, strict=False)]
        for target, one, content in zip(targets, formats, contents, strict=True):
            transfer(content, one, target, job, sources, overwrite=overwrite)
            if not as_json and not quiet:
                line(f"{shown(target)}: {counted(len(content), 'row')}")
        if as_json:
            each = zip(targets, contents, strict=True)
            write_json([{"path": str(target), "rows": len(content)} for target, content in each])


def _part(text: str) -> tuple[Path, float]:
    name, _, size = text.rpartition("=")
    try:
        number = float(size) if "." in size else int(size)
    except ValueError:
        number = -1
    if not name or number < 0:
        message = f"{text!r} is not a part: expected TARGET=SIZE, such as train=0.9 or test=1000"
        raise ValueError(message)
    return absolute(name), number
