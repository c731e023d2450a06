"""`ingot recover`: finish a file whose writer died."""

from dataclasses import asdict
from typing import Annotated

import typer

from ingot.cli.options import AsJson, write_json
from ingot.cli.text import line, size
from ingot.dataset.write.file import recover as recover_file
from ingot.errors import counted
from ingot.records.expand import absolute


def recover(
    path: Annotated[str, typer.Argument(metavar="FILE", help="An Ingot file.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also a file that a data set lists as finished.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Cut an unfinished file back to its last commit and finish it.

    Nothing that was committed is lost; a finished file is not changed.
    """
    done = recover_file(path, force=force)
    if as_json:
        write_json({"path": str(absolute(path)), **asdict(done)})
        return
    whole = "was finished already: nothing to do (ingot verify looks for damage)"
    what = whole if done.was_whole else f"finished, {size(done.cut_bytes)} cut off"
    line(f"{path}: {counted(done.rows, 'row')}, {what}")
    for one in done.damaged:
        line(f"offset {one.offset}: {one.reason}")
