"""`ingot bench`: how fast this data set is on this machine, and what to set."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ingot.cli.files import without_fields
from ingot.cli.options import AsJson, Fields, Source, shown, write_json
from ingot.cli.text import line, size, table
from ingot.dataset import Dataset
from ingot.errors import counted
from ingot.loader import Loader
from ingot.opening import open as open_any
from ingot.records import Reader

_SEED = 0
_ENOUGH = 0.9
"""The share of the best rate from which on a smaller setting is good enough."""

_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Measurement:
    """One way to read, and its rate.

    Attributes:
        what: "in order", "at random" or "loader".
        batch: The number of rows per call or step; None for one after another.
        workers: The threads of a loader.
        cold: Whether the files were dropped from memory before.
        rows_per_s: Rows per second.
        bytes_per_s: Bytes of files per second, as far as rows are alike.
    """

    what: str
    batch: int | None
    workers: int | None
    cold: bool
    rows_per_s: float
    bytes_per_s: float


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
    with open_any(path) as found:
        if field and not isinstance(found, Dataset):
            raise without_fields(path)
        data = found.select(*field) if field and isinstance(found, Dataset) else found
        if not len(data):
            raise ValueError(f"{path}: there are no rows to measure")
        done = list(measure(data, batches, threads, seconds, cold=cold and is_evictable()))
        advice = advice_for(done, data.nbytes)
        about: dict[str, Any] = {"path": found.path, "rows": len(data), "bytes": data.nbytes}
    if as_json:
        write_json(about | {"measurements": [asdict(one) for one in done], "advice": advice})
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


def is_evictable() -> bool:
    """Whether this system can be asked to drop files from memory."""
    return hasattr(os, "posix_fadvise")


def evict(paths: Sequence[str]) -> None:
    """Ask the system to drop files from memory; pages that are in use stay."""
    for path in paths:
        place = Path(path)
        files = [one for one in place.rglob("*") if one.is_file()] if place.is_dir() else [place]
        for file in files:
            handle = os.open(file, os.O_RDONLY)
            try:
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)


def measure(
    data: Reader | Dataset,
    batches: Sequence[int],
    workers: Sequence[int],
    seconds: float,
    *,
    cold: bool,
) -> Iterator[Measurement]:
    """Yield measurements, each of about so many seconds."""
    each = data.nbytes / len(data)

    def made(
        what: str, batch: int | None, threads: int | None, rate: float, *, cold: bool = False
    ) -> Measurement:
        return Measurement(what, batch, threads, cold, rate, rate * each)

    _rate(_in_order(data), seconds)  # The first pass brings the files into memory.
    yield made("in order", None, None, _rate(_in_order(data), seconds))
    fitting = [one for one in batches if one <= len(data)]
    for batch in fitting:
        yield made("at random", batch, None, _rate(_at_random(data, batch), seconds))
    most = max(fitting, default=1)
    for count in workers:
        yield made("loader", most, count, _loader_rate(data, most, count, seconds))
    for batch in fitting if cold else ():
        evict(data.paths)
        rate = _rate(_at_random(data, batch), seconds)
        yield made("at random", batch, None, rate, cold=True)


def _in_order(data: Reader | Dataset) -> Iterator[int]:
    while True:
        for start in range(0, len(data), _BLOCK):
            stop = min(start + _BLOCK, len(data))
            yield _read(data, np.arange(start, stop))


def _at_random(data: Reader | Dataset, batch: int) -> Iterator[int]:
    rng = np.random.default_rng(_SEED)
    while True:
        yield _read(data, rng.integers(0, len(data), batch))


def _read(data: Reader | Dataset, numbers: "np.ndarray[Any, np.dtype[np.int64]]") -> int:
    if len(numbers) == 1:
        data[int(numbers[0])]
    else:
        data.read(numbers)
    return len(numbers)


def _loader_rate(data: Reader | Dataset, batch: int, workers: int, seconds: float) -> float:
    order = data.shuffle(_SEED).repeat()
    with Loader(order, batch_size=batch, workers=workers) as loader:
        return _rate((batch for _ in loader), seconds)


def _rate(steps: Iterator[int], seconds: float) -> float:
    """Return the rows per second of an endless iterator of numbers of rows."""
    begun = time.perf_counter()
    rows = 0
    while (took := time.perf_counter() - begun) < seconds or not rows:
        rows += sum(islice(steps, 1))
    return rows / took


def advice_for(done: Sequence[Measurement], nbytes: int) -> list[str]:
    """Return what to set, given the measurements."""
    found = []
    warm = [one for one in done if one.what == "at random" and not one.cold]
    if len(warm) > 1:
        one = _smallest(warm, lambda one: one.batch or 0)
        found.append(f"read batches of {one.batch}: larger ones gain less than a tenth")
    loaders = [one for one in done if one.what == "loader"]
    if len(loaders) > 1:
        one = _smallest(loaders, lambda one: one.workers or 0)
        found.append(f"ingot.Loader(..., workers={one.workers}): more gain less than a tenth")
    cold = [one for one in done if one.cold]
    if cold and warm:
        ratio = max(one.rows_per_s for one in warm) / max(one.rows_per_s for one in cold)
        found.append(
            f"data in memory is read {ratio:.1f} times as fast as cold data"
            if ratio * _ENOUGH > 1
            else "cold data is read about as fast as data in memory: the device is not the limit"
        )
    if nbytes > _memory() // 2:
        found.append("the files do not fit into half of the memory: expect the cold rates")
    return found


def _smallest(measured: Sequence[Measurement], key: Callable[[Measurement], int]) -> Measurement:
    best = max(one.rows_per_s for one in measured)
    return min((one for one in measured if one.rows_per_s >= _ENOUGH * best), key=key)


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
