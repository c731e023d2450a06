"""`ingot pack`: a folder as one file."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ingot.cli.options import AsJson, Overwrite, Quiet, progress, report
from ingot.cli.text import size
from ingot.errors import counted
from ingot.packed import PackedFolder
from ingot.packed import pack as pack_folder
from ingot.records.expand import absolute


def pack(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder to pack.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The file to write.")],
    compression: Annotated[
        Literal["auto", "zstd", "lz4", "none"], typer.Option(help="How to compress each file.")
    ] = "auto",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Pack the files under a folder into one file."""
    chosen = None if compression == "none" else compression
    pack_folder(
        folder, target, compression=chosen, overwrite=overwrite, progress=progress(quiet=quiet)
    )
    with PackedFolder(target) as packed:
        files = len(packed)
    nbytes = Path(target).stat().st_size
    content = {"path": str(absolute(target)), "files": files, "bytes": nbytes}
    text = f"{target}: {counted(files, 'file')}, {size(nbytes)}"
    report(content, text, as_json=as_json, quiet=quiet)
