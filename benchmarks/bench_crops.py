"""How fast do JPEG files become batches of random crops, mirrored and normalised to float32?"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import command
import crops
from data import Dataset, Source
from measure import in_fresh_process, in_rounds, rate, settle_allocator, worker
from report import Goal, Question, Row

_TITLES = {
    "random": "JPEG of 256 x 256: random crop to 224, mirror, normalise to float32, 2 cores",
    "resized": "JPEG of 500 x 375: the same with a random resized crop to 224",
}
_GOALS = {"random": (Goal(1.3, "best peer"),), "resized": ()}
QUESTIONS = {
    key: Question(key, title, "samples/s", goals=_GOALS[key]) for key, title in _TITLES.items()
}
CPU = {
    key: Question(f"{key}-cpu", "the same: processor time", "us/sample", higher_is_better=False)
    for key in _TITLES
}
_epochs: list[crops.Epoch] = []


@dataclass(frozen=True)
class Settings:
    """How often and how many."""

    directory: Path
    rounds: int = 3
    num_pictures: int = 2_000

    def source(self, job: crops.Job) -> Source:
        """Return the pictures of a job."""
        return Source(Dataset(f"crops-{job.name}", job.picture, self.num_pictures), self.directory)


def _write(path: Path, source: Source, write: Callable[[Path, list[bytes]], None]) -> None:
    shutil.rmtree(path, ignore_errors=True)
    write(path, source.load())


def _open(system: str, job: crops.Job, path: Path, num_pictures: int) -> None:
    """Open a system, and check that an epoch of it has crops of all pictures."""
    settle_allocator()
    epoch = crops.WAYS[system](job, path)
    count = 0
    for batch in epoch(0):
        values = np.asarray(batch)
        count += len(values)
        if values.shape[1:] != (3, crops.SIDE, crops.SIDE) or values.dtype != np.float32:
            message = f"{system}: batches are {values.shape} of {values.dtype}"
            raise ValueError(message)
        if abs(float(values.mean())) > 1 or not 0.5 < float(values.std()) < 1.5:
            message = f"{system}: values are not normalised: {values.mean()}, {values.std()}"
            raise ValueError(message)
    if count != num_pictures:
        message = f"{system}: an epoch has {count} pictures, not {num_pictures}"
        raise ValueError(message)
    _epochs.append(epoch)


def _cpu_seconds() -> float:
    """Return the processor time of this process and of all that it has started."""
    psutil: Any = importlib.import_module("psutil")
    own = psutil.Process()
    others = [one.cpu_times() for one in own.children(recursive=True)]
    return sum(own.cpu_times()[:4]) + sum(sum(one[:2]) for one in others)


def _window(seed: int, num_pictures: int) -> tuple[float, float]:
    """Return samples a second, and microseconds of processor time for each, of an epoch."""
    start = _cpu_seconds()
    found = rate((len(batch) for batch in _epochs[0](seed)), math.inf)
    return found, (_cpu_seconds() - start) / num_pictures * 1e6


def ask(key: str, settings: Settings) -> Iterator[list[Row]]:
    """Yield how fast each system is, and what it costs."""
    job = crops.JOBS[key]
    source = settings.source(job)
    source.prepare()
    folder, own = settings.directory / f"crops-{key}", settings.directory / f"crops-{key}-ingot"
    in_fresh_process(_write, folder, source, crops.write_folder)
    in_fresh_process(_write, own, source, crops.write_ingot)
    missing = in_fresh_process(crops.missing)
    cpu: dict[str, list[float]] = {one: [] for one in crops.WAYS if one not in missing}
    processes = {system: worker() for system in cpu}
    for system, process in processes.items():
        path = own if system == "ingot" else folder
        process.submit(_open, system, job, path, settings.num_pictures).result()

    def window(system: str, seed: int) -> float:
        submitted = processes[system].submit(_window, seed, settings.num_pictures)
        found, cost = submitted.result()
        cpu[system].append(cost)
        return found

    windows: dict[str, Callable[[int], float]] = {
        system: functools.partial(window, system) for system in processes
    }
    found = in_rounds(settings.rounds, windows)
    for process in processes.values():
        process.shutdown()
    for path in (folder, own):
        shutil.rmtree(path)
    left_out = [Row(QUESTIONS[key], system, (), why) for system, why in missing.items()]
    yield [Row(QUESTIONS[key], system, values) for system, values in found.items()] + left_out
    yield [Row(CPU[key], system, tuple(values)) for system, values in cpu.items()]


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    arguments = command.parser(__doc__, "crops", "QUESTION", QUESTIONS).parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    settings = Settings(arguments.dir)
    if arguments.quick:
        settings = Settings(arguments.dir, 2, 1_000)
    described = {"rounds": settings.rounds, "pictures": settings.num_pictures}
    names = ("ingot-data", "torch", "simplejpeg", "spdl", "grain", "numpy")
    versions = {name: importlib.metadata.version(name) for name in names}
    answers = (rows for key in arguments.only or QUESTIONS for rows in ask(key, settings))
    command.publish(arguments, described, versions, answers)


if __name__ == "__main__":
    main()
