"""`ingot ls`: what a packed folder contains."""

import sys
from typing import Annotated

import typer

from ingot.cli.options import AsJson, write_json
from ingot.cli.text import safe, table
from ingot.packed import PackedFolder

Pack = Annotated[str, typer.Argument(metavar="PACK", help="A file that ingot pack wrote.")]


def ls(
    pack: Pack,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A folder in the pack.")] = "",
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Also list what is in folders.")
    ] = False,
    long: Annotated[bool, typer.Option("--long", "-l", help="Show sizes.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what is in a packed folder."""
    with PackedFolder(pack) as folder:
        is_file = folder.is_file(path)
        names = [path] if is_file else folder.list(path, recursive=recursive)
        whole = [name if is_file or not path else f"{path.rstrip('/')}/{name}" for name in names]
        are_folders = [folder.is_dir(name) for name in whole]
        files = [name for name, one in zip(whole, are_folders, strict=True) if not one]
        sizes = dict(zip(files, folder.sizes(files), strict=True)) if long or as_json else {}
        entries = list(zip(names, whole, are_folders, strict=True))
        if as_json:
            write_json(
                [
                    {"path": name, "folder": one, "bytes": None if one else sizes[full]}
                    for name, full, one in entries
                ]
            )
        elif long:
            rows = [
                ("" if one else f"{sizes[full]:,}", name + "/" * one) for name, full, one in entries
            ]
            table(("bytes", "path"), rows, right=(0,))
        else:
            sys.stdout.writelines(f"{safe(name)}{'/' * one}\n" for name, _, one in entries)
