"""`ingot extract`: one file of a packed folder."""

from pathlib import PurePosixPath
from typing import Annotated

import typer

from ingot.cli.files import write_file
from ingot.cli.ls import Pack
from ingot.cli.options import AsJson, Overwrite, write_json
from ingot.packed import PackedFolder
from ingot.records.expand import absolute


def extract(
    pack: Pack,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file in the pack.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Its own name by default; - is standard output.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write one file of a packed folder to disk.

    ingot unpack writes all of them.
    """
    with PackedFolder(pack) as folder:
        data = folder.read_one(path)
    target = PurePosixPath(path).name if output is None else output
    write_file(target, data, overwrite=overwrite)
    if as_json and target != "-":
        write_json({"path": str(absolute(target)), "bytes": len(data)})
