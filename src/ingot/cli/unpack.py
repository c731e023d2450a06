"""`ingot unpack`: a packed folder as a folder."""

from typing import Annotated

import typer

from ingot.cli.ls import Pack
from ingot.cli.options import AsJson, Quiet, progress, report
from ingot.errors import counted
from ingot.packed import PackedFolder
from ingot.records.expand import absolute


def unpack(
    pack: Pack,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The folder to write to.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also into a folder with files; replace those.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write all files of a packed folder to a folder.

    Nothing is written outside of it, whatever names the pack contains.
    """
    with PackedFolder(pack) as packed:
        packed.unpack(target, overwrite=overwrite, progress=progress(quiet=quiet))
        files = len(packed)
    content = {"path": str(absolute(target)), "files": files}
    report(content, f"{target}: {counted(files, 'file')}", as_json=as_json, quiet=quiet)
