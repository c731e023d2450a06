"""How fast and how small are HDF5 files, h5record's, h5py's and Ingot's?"""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import command
import hdf5
from measure import in_rounds, rate, settle_allocator, worker
from report import Goal, Question, Row

QUESTIONS = {
    "write": Question(
        "write",
        "write rows of 3 KB",
        unit="rows/s",
        goals=(Goal(50, "h5record", "ingot .h5"), Goal(50, "h5record", "ingot .ingot")),
        versus="h5record",
    ),
    "size": Question(
        "size",
        "size of rows of 3 KB",
        unit="bytes/row",
        higher_is_better=False,
        goals=(
            Goal(1, "h5record gzip", "ingot .h5 gzip"),
            Goal(1, "h5record gzip", "ingot .ingot gzip"),
        ),
        versus="h5record gzip",
    ),
    "one": Question(
        "one",
        "rows of 3 KB, one at a time, at random",
        unit="rows/s",
        goals=(
            Goal(5, "h5record", "ingot peer .h5"),
            Goal(5, "h5record", "ingot .h5"),
            Goal(50, "h5record", "ingot .ingot"),
        ),
        versus="h5record",
    ),
    "loader": Question(
        "loader",
        "rows of 3 KB, PyTorch's loader, batches of 64",
        unit="rows/s",
        versus="h5record",
    ),
    "contiguous": Question(
        "contiguous",
        "random batches of 64 x 768, contiguous",
        unit="rows/s",
        goals=(Goal(10, "h5py fancy"),),
        versus="h5py fancy",
    ),
    "chunked": Question(
        "chunked",
        "random batches of 64 x 768, chunks of 64 rows",
        unit="rows/s",
        versus="h5py fancy",
    ),
}
_WRITTEN = {
    "h5record": "h5record.h5",
    "h5py rows": "h5py-rows.h5",
    "h5py batches": "h5py-batches.h5",
    "ingot .h5": "ingot.h5",
    "ingot .ingot": "ingot.ingot",
}
_SIZED = {
    "h5record": "h5record.h5",
    "h5record gzip": "h5record-gzip.h5",
    "ingot .h5": "ingot.h5",
    "ingot .h5 gzip": "ingot-gzip.h5",
    "ingot .ingot": "ingot.ingot",
    "ingot .ingot gzip": "ingot-gzip.ingot",
}
_WARM_UP_ROWS = 64
_SLOW_WRITERS = ("h5record", "h5py rows")

_steps: list[hdf5.Steps] = []


@dataclass(frozen=True)
class Settings:
    """How long and how large; the slow writers write fewer rows."""

    directory: Path
    rounds: int = 5
    window_s: float = 0.5
    num_rows: int = 10_000
    slow_rows: int = 2_000
    table_rows: int = 100_000


class Files:
    """The files that are read, each written when it is first asked for."""

    def __init__(self, settings: Settings) -> None:
        """Start the process that writes them."""
        self._settings = settings
        self._process = worker()
        self._paths: dict[str, Path] = {}

    def __getitem__(self, name: str) -> Path:
        if name not in self._paths:
            path = self._settings.directory / name
            tables = name in hdf5.TABLES
            size = self._settings.table_rows if tables else self._settings.num_rows
            self._process.submit(_write, name, path, size).result()
            self._paths[name] = path
        return self._paths[name]

    def close(self) -> None:
        """Delete all that were written, and end the process."""
        self._process.shutdown()
        for path in self._paths.values():
            hdf5.remove(path)


def _write(name: str, path: Path, size: int) -> None:
    hdf5.remove(path)
    hdf5.FILES[name](path, size)


def _write_rate(name: str, path: Path, size: int) -> float:
    _write(name, path, _WARM_UP_ROWS)
    hdf5.remove(path)
    hdf5.rows(size)
    start = time.perf_counter()
    hdf5.FILES[name](path, size)
    seconds = time.perf_counter() - start
    hdf5.check_file(path)
    hdf5.remove(path)
    return size / seconds


def _open(way: hdf5.Way, path: Path) -> None:
    settle_allocator()
    for file in hdf5.files(path):
        file.read_bytes()
    _steps.append(way.open(path))


def _read_rate(seconds: float, seed: int) -> float:
    return rate(_steps[0](seed), seconds)


def _ask_writers(settings: Settings) -> list[Row]:
    processes = {system: worker() for system in _WRITTEN}

    def size_for(system: str) -> int:
        return settings.slow_rows if system in _SLOW_WRITERS else settings.num_rows

    def window(system: str) -> Callable[[int], float]:
        name, size = _WRITTEN[system], size_for(system)
        path = settings.directory / f"window-{name}"
        return lambda _: processes[system].submit(_write_rate, name, path, size).result()

    found = in_rounds(settings.rounds, {system: window(system) for system in _WRITTEN})
    for process in processes.values():
        process.shutdown()
    return [
        Row(QUESTIONS["write"], system, values, f"{size_for(system):,} rows")
        for system, values in found.items()
    ]


def _ask_readers(key: str, settings: Settings, files: Files) -> list[Row]:
    ways = {way.system: way for way in hdf5.WAYS[key]}
    processes = {system: worker() for system in ways}
    for system, way in ways.items():
        processes[system].submit(_open, way, files[way.file]).result()

    def window(system: str) -> Callable[[int], float]:
        process = processes[system]
        return lambda seed: process.submit(_read_rate, settings.window_s, seed).result()

    found = in_rounds(settings.rounds, {system: window(system) for system in ways})
    for process in processes.values():
        process.shutdown()
    return [
        Row(QUESTIONS[key], system, values, ways[system].note) for system, values in found.items()
    ]


def _ask_sizes(settings: Settings, files: Files) -> list[Row]:
    sizes = {
        system: sum(file.stat().st_size for file in hdf5.files(files[name]))
        for system, name in _SIZED.items()
    }
    return [
        Row(QUESTIONS["size"], system, (size / settings.num_rows,))
        for system, size in sizes.items()
    ]


def ask(keys: list[str], settings: Settings) -> Iterator[list[Row]]:
    """Yield the rows of each question, and delete the files in the end."""
    files = Files(settings)
    for key in keys:
        if key == "write":
            yield _ask_writers(settings)
        elif key == "size":
            yield _ask_sizes(settings, files)
        else:
            yield _ask_readers(key, settings, files)
    files.close()


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    arguments = command.parser(__doc__, "hdf5", "QUESTION", QUESTIONS).parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    settings = Settings(arguments.dir)
    if arguments.quick:
        settings = Settings(arguments.dir, 2, 0.2, 1_000, 200, 10_000)
    described = {
        "rounds": settings.rounds,
        "window_s": settings.window_s,
        "rows": settings.num_rows,
        "table_rows": settings.table_rows,
    }
    names = ("ingot-data", "h5record", "h5py", "torch")
    versions = {name: importlib.metadata.version(name) for name in names}
    command.publish(
        arguments, described, versions, ask(arguments.only or list(QUESTIONS), settings)
    )


if __name__ == "__main__":
    main()
