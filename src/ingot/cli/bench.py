"""`ingot bench`: how fast this data set is on this machine, and what to set."""

from typing import Annotated, Any

import typer

from ingot.cli import opened
from ingot.cli.measuring import Measurement, advice_for, is_evictable, measure
from ingot.cli.options import AsJson, Fields, Source, shown, write_json
from ingot.cli.text import line, size, table
from ingot.dataset import Dataset
from ingot.errors import counted


def bench(
    path: Source,
    seconds: Annotated[
        float, typer.Option(min=0.01, max=60, help="How long each measurement takes.")
    ] = 0.5,
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="A batch size; may be repeated.")
    ] = None,
    workers: Annotated[
        list[int] | None, typer.Option(min=0, help="Threads of a Loader; may be repeated.")
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold/--warm", help="Also with data that is not in memory.")
    ] = True,
    field: Fields = None,
    as_json: AsJson = False,
) -> None:
    """Measure reading, and say what to set.

    Rows are read in order, at random, in batches and with a Loader. Cold measurements ask the
    system to drop the files from memory, which it may refuse.
    """
    batches, threads = batch or [1, 16, 64, 256], workers or [0, 1, 2, 4]
    with opened.opened(path) as found:
        if field and not isinstance(found, Dataset):
            raise opened.without_fields(path)
        data = found.select(*field) if field and isinstance(found, Dataset) else found
        if not len(data):
            message = f"{path}: there are no rows to measure"
            raise ValueError(message)
        done = list(measure(data, batches, threads, seconds, cold=cold and is_evictable()))
        advice = advice_for(done, data.nbytes)
        about: dict[str, Any] = {"path": found.path, "rows": len(data), "bytes": data.nbytes}
    if as_json:
        write_json(about | {"measurements": [one.content() for one in done], "advice": advice})
        return
    rows = counted(about["rows"], "row")
    line(f"{shown(about['path'])}: {rows}, {size(about['bytes'])}", "bold")
    table(
        ("what", "batch", "workers", "data", "rows/s", "bytes/s"),
        [_cells(one) for one in done],
        right=(1, 2, 4, 5),
    )
    for one in advice:
        line(one)


def _cells(one: Measurement) -> tuple[str, ...]:
    workers = "" if one.workers is None else str(one.workers)
    where = "cold" if one.cold else "in memory"
    rows, nbytes = f"{one.rows_per_s:,.0f}", size(one.bytes_per_s)
    return one.what, str(one.batch or ""), workers, where, rows, nbytes
