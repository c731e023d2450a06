"""How fast are typed data sets, Ingot's and others'?"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import command
import workloads
from measure import rate, settle_allocator, worker
from peers import installed
from report import Goal, Question, Row

_SIZES = {
    "samples": 20_000,
    "ranges": 40,
    "ranges-decoded": 40,
    "column": 1_000_000,
    "iteration": 1_000_000,
    "pictures": 1_000,
}
_QUICK_SIZES = {
    "samples": 4_000,
    "ranges": 10,
    "ranges-decoded": 10,
    "column": 100_000,
    "iteration": 100_000,
    "pictures": 256,
}
QUESTIONS = {
    "samples": Question(
        "samples",
        "64 x 64 x 3 images and labels, random batches of 64 into arrays",
        unit="samples/s",
        goals=(Goal(5, "granular"),),
    ),
    "ranges": Question(
        "ranges",
        "random ranges of 10 frames of 8 KB out of sequences of 500",
        unit="ranges/s",
        goals=(Goal(5, "granular 0.21"),),
    ),
    "ranges-decoded": Question(
        "ranges-decoded",
        "the same, frames decoded to pixels of 144 x 192",
        unit="ranges/s",
        goals=(Goal(5, "granular 0.21"),),
    ),
    "column": Question(
        "column",
        "the label of every row, rows in 50 files",
        unit="rows/s",
        goals=(Goal(100, "every row"),),
    ),
    "iteration": Question(
        "iteration",
        "a label and a text, row by row in order",
        unit="us/row",
        higher_is_better=False,
        goals=(Goal(6),),
    ),
    "pictures": Question(
        "pictures",
        "JPEG of 500 x 375, decoded into a batch of 64, two threads",
        unit="pictures/s",
        goals=(Goal(1.5, "pillow"),),
    ),
}

_steps: list[Any] = []


def _write(key: str, place: int, path: Path, size: int) -> None:
    workloads.remove(path)
    workloads.WAYS[key][place].write(path, size)


def _open(key: str, place: int, path: Path) -> None:
    settle_allocator()
    workloads.prepared(path)
    _steps.append(workloads.WAYS[key][place].open(path))


def _window(seconds: float, seed: int) -> float:
    return rate(workloads.steps(_steps[0], seed), seconds)


def ask(key: str, directory: Path, size: int, rounds: int, seconds: float) -> Iterator[Row]:
    """Write the data of one question, and yield how fast each system does the job."""
    ways = workloads.WAYS[key]
    processes: list[ProcessPoolExecutor] = [worker() for _ in ways]
    paths: list[Path] = []
    for place, way in enumerate(ways):
        paths.append(directory / f"{key}-{way.system.replace(' ', '-')}")
        processes[place].submit(_write, key, place, paths[place], size).result()
        if way.system == "every row":
            paths[place] = paths[0]
        processes[place].submit(_open, key, place, paths[place]).result()
    windows: dict[str, list[float]] = {way.system: [] for way in ways}
    for seed in range(rounds):
        for way, process in zip(ways, processes, strict=True):
            windows[way.system].append(process.submit(_window, seconds, seed).result())
    for process in processes:
        process.shutdown()
    for path in paths:
        workloads.remove(path)
    question = QUESTIONS[key]
    if question.unit == "us/row":
        windows = {name: [1e6 / rate for rate in rates] for name, rates in windows.items()}
    return (Row(question, system, tuple(found)) for system, found in windows.items())


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    arguments = command.parser(__doc__, "dataset", "QUESTION", QUESTIONS).parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    sizes = _QUICK_SIZES if arguments.quick else _SIZES
    rounds, seconds = (2, 0.2) if arguments.quick else (7, 0.5)
    described = {"rounds": rounds, "window_s": seconds, "datapoints": sizes}
    answers = (
        ask(key, arguments.dir, sizes[key], rounds, seconds) for key in arguments.only or QUESTIONS
    )
    command.publish(arguments, described, installed(["ingot", "granular"]), answers)


if __name__ == "__main__":
    main()
