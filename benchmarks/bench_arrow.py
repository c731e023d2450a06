"""How fast are random batches of Parquet files and of Hugging Face's folders, read in place?"""

from __future__ import annotations

import importlib.metadata
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

import command
import ingot
from measure import in_fresh_process, in_rounds, rate, settle_allocator, worker
from peers import BATCH
from report import Question, Row

_ROWS_PER_GROUP = 1000
_WIDTH = 64
_BLOB = 1000
QUESTIONS = {
    "saved": Question(
        "saved", "random batches of 64 rows of 1.4 KB, a folder of Hugging Face", "rows/s"
    ),
    "parquet": Question(
        "parquet", "random batches of 64 rows of 1.4 KB, Parquet, row groups of 1000", "rows/s"
    ),
}

Read = Callable[[Any], object]
_open: dict[str, dict[str, Callable[[Path], Read]]] = {
    "saved": {
        "ingot": lambda path: ingot.open(path / "saved").__getitem__,
        "datasets": lambda path: datasets.load_from_disk(path / "saved").__getitem__,
        "datasets numpy": lambda path: (
            datasets.load_from_disk(path / "saved").with_format("numpy").__getitem__
        ),
        "datasets arrow": lambda path: (
            datasets.load_from_disk(path / "saved").with_format("arrow").__getitem__
        ),
        "ingot, copied": lambda path: ingot.open(path / "copied").__getitem__,
    },
    "parquet": {
        "ingot": lambda path: ingot.open(path / "rows.parquet").__getitem__,
        "pyarrow.dataset": lambda path: pa.dataset.dataset(path / "rows.parquet").take,
        "ingot, copied": lambda path: ingot.open(path / "copied").__getitem__,
    },
}
_NOTES = {
    "datasets": "lists in place of arrays",
    "datasets numpy": "arrays, as Ingot has them",
    "datasets arrow": "a table, not values",
    "pyarrow.dataset": "a table, not values",
    "ingot, copied": "the same rows in an Ingot data set",
}
_reads: list[Read] = []


@dataclass(frozen=True)
class Settings:
    """How often and how many."""

    directory: Path
    rounds: int = 4
    window_s: float = 1.0
    num_rows: int = 100_000


def _write(path: Path, count: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    rng = np.random.default_rng(0)
    numbers = pa.array(rng.standard_normal(count * _WIDTH).astype(np.float32))
    table = pa.table(
        {
            "label": rng.integers(0, 10, count),
            "text": [f"this is row {k} " * 8 for k in range(count)],
            "vector": pa.FixedSizeListArray.from_arrays(numbers, _WIDTH),
            "blob": [rng.bytes(_BLOB) for _ in range(count)],
        }
    )
    pa.parquet.write_table(table, path / "rows.parquet", row_group_size=_ROWS_PER_GROUP)
    datasets.disable_progress_bars()
    datasets.Dataset(table).save_to_disk(path / "saved")
    ingot.from_arrow(table, path / "copied")


def _opened(key: str, system: str, path: Path) -> None:
    settle_allocator()
    _reads.append(_open[key][system](path))


def _read_rate(count: int, seconds: float, seed: int) -> float:
    rng = np.random.default_rng(seed)

    def steps() -> Iterator[int]:
        while True:
            _reads[0](rng.integers(0, count, BATCH))
            yield BATCH

    return rate(steps(), seconds)


def ask(keys: list[str], settings: Settings) -> Iterator[list[Row]]:
    """Yield the rows of each question, and delete the files in the end."""
    path = settings.directory / "arrow"
    in_fresh_process(_write, path, settings.num_rows)
    for key in keys:
        processes = {system: worker() for system in _open[key]}
        for system, process in processes.items():
            process.submit(_opened, key, system, path).result()

        def window(system: str) -> Callable[[int], float]:
            asked = (settings.num_rows, settings.window_s)
            process = processes[system]  # noqa: B023 -- it is called before the next question
            return lambda seed: process.submit(_read_rate, *asked, seed).result()

        found = in_rounds(settings.rounds, {system: window(system) for system in processes})
        for process in processes.values():
            process.shutdown()
        yield [
            Row(QUESTIONS[key], system, values, _NOTES.get(system, ""))
            for system, values in found.items()
        ]
    shutil.rmtree(path)


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    arguments = command.parser(__doc__, "arrow", "QUESTION", QUESTIONS).parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    settings = Settings(arguments.dir)
    if arguments.quick:
        settings = Settings(arguments.dir, 2, 0.2, 5_000)
    described = {
        "rounds": settings.rounds,
        "window_s": settings.window_s,
        "rows": settings.num_rows,
    }
    versions = {
        name: importlib.metadata.version(name) for name in ("ingot-data", "datasets", "pyarrow")
    }
    command.publish(
        arguments, described, versions, ask(arguments.only or list(QUESTIONS), settings)
    )


if __name__ == "__main__":
    main()
