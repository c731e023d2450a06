"""`ingot merge`: several sources as one, or the small files of a data set as larger ones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ingot.cli.convert import Check, Compress, ShardBytes, tell_conversion
from ingot.cli.options import AsJson, Fields, Overwrite, Quiet, progress, report
from ingot.conversion import convert
from ingot.dataset.write.compaction import compact
from ingot.errors import counted
from ingot.records.expand import absolute


def merge(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="The sources, then the target.")
    ],
    field: Fields = None,
    shard_bytes: ShardBytes = "1GB",
    compression: Compress = "auto",
    check: Check = True,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write several sources as one target.

    The sources are all records, or all rows with the same fields. With one PATH, a data set
    directory, merge its small files in place.
    """
    chosen = None if compression == "none" else compression
    if len(paths) == 1:
        _check_in_place(
            paths[0], {"--field": field, "--no-check": not check, "--overwrite": overwrite}
        )
        files = compact(
            paths[0],
            shard_bytes=shard_bytes,
            compression=chosen,
            progress=progress(quiet=quiet),
        )
        content = {"path": str(absolute(paths[0])), "files": files}
        report(content, f"{paths[0]}: {counted(files, 'file')}", as_json=as_json, quiet=quiet)
        return
    done = convert(
        paths[:-1],
        paths[-1],
        names=field,
        shard_bytes=shard_bytes,
        compression=chosen,
        check=check,
        overwrite=overwrite,
        progress=progress(quiet=quiet),
    )
    tell_conversion(done, as_json=as_json, quiet=quiet)


def _check_in_place(path: str, options: Mapping[str, object]) -> None:
    if not Path(path).is_dir():
        raise ValueError(
            f"{path}: a single PATH is a data set directory; name the target behind the sources"
        )
    for name, given in options.items():
        if given:
            message = f"{path}: {name} needs a target: a data set is merged in place as it is"
            raise ValueError(message)
