"""How fast do samples become batches of tensors, by PyTorch's loader and by Ingot's own?

`ingot` and `bagz` are data sets in PyTorch's loader, `ingot.torch.DataLoader` is that loader along
an order, and `ingot.Loader` has threads instead of processes.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import command
import loader
from measure import in_fresh_process, in_rounds, worker
from peers import installed
from report import Goal, Question, Row

_WORKERS = {"workers": 2, "none": 0}
QUESTIONS = {
    "workers": Question(
        "workers",
        "64 x 64 x 3 images and labels, shuffled, batches of 64 as tensors, 2 workers",
        unit="samples/s",
        goals=(Goal(1, "bagz"),),
    ),
    "none": Question(
        "none",
        "the same without workers",
        unit="samples/s",
        goals=(Goal(1, "bagz"),),
    ),
}


def ask(key: str, directory: Path, size: int, rounds: int) -> Iterator[Row]:
    """Yield how many samples a second each system gives the loader, epoch by epoch."""
    paths = {system: directory / f"loader-{system}" for system in loader.WRITERS}
    for system, path in paths.items():
        shutil.rmtree(path, ignore_errors=True)
        in_fresh_process(loader.WRITERS[system], path, size)
    processes = {system: worker() for system in paths}
    for system, process in processes.items():
        process.submit(loader.open_loader, system, paths[system], _WORKERS[key]).result()

    def window(system: str, seed: int) -> float:
        return processes[system].submit(loader.epoch_rate, seed).result()

    windows: dict[str, Callable[[int], float]] = {
        system: functools.partial(window, system) for system in paths
    }
    found = in_rounds(rounds, windows)
    for process in processes.values():
        process.shutdown()
    for path in paths.values():
        shutil.rmtree(path, ignore_errors=True)
    return (Row(QUESTIONS[key], system, values) for system, values in found.items())


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    arguments = command.parser(__doc__, "loader", "QUESTION", QUESTIONS).parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    size, rounds = (4_000, 2) if arguments.quick else (40_000, 5)
    described = {"rounds": rounds, "samples": size}
    answers = (ask(key, arguments.dir, size, rounds) for key in arguments.only or QUESTIONS)
    command.publish(arguments, described, installed(["ingot", "bagz"]), answers)


if __name__ == "__main__":
    main()
