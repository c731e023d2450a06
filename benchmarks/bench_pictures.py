"""How fast are labelled pictures read from a folder, from tars, from Arrow and from Ingot?"""

from __future__ import annotations

import importlib.metadata
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import command
import pictures
from data import Dataset, Source
from measure import in_fresh_process, in_rounds, rate, settle_allocator, worker
from pictures import Mode, Way
from report import Question, Row

_UNIT = "pictures/s"
_JPEG = "JPEG of 256 x 256, 11 KB"
_MODES = {
    "decoded": Mode(decoded=True, num_workers=0),
    "decoded-workers": Mode(decoded=True, num_workers=2),
    "stored": Mode(decoded=False, num_workers=0),
    "stored-workers": Mode(decoded=False, num_workers=2),
}
QUESTIONS = {
    "decoded": Question("decoded", f"{_JPEG}: an epoch, decoded, no workers", _UNIT),
    "decoded-workers": Question("decoded-workers", "an epoch, decoded, two workers", _UNIT),
    "stored": Question("stored", "an epoch of the stored bytes, no workers", _UNIT),
    "stored-workers": Question(
        "stored-workers", "an epoch of the stored bytes, two workers", _UNIT
    ),
    "write": Question("write", "write from memory, not synced", _UNIT),
    "size": Question("size", "space on the disk", "bytes/picture", higher_is_better=False),
    "files": Question("files", "number of files", "files", higher_is_better=False),
    "start": Question(
        "start", "a new process, to its first decoded batch", "s", higher_is_better=False
    ),
}
_REFERENCE = "import torch"
_WARM_UP_PICTURES = 64
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system has

_epochs: list[pictures.Epoch] = []
_records: list[bytes] = []


@dataclass(frozen=True)
class Settings:
    """How often and how many."""

    directory: Path
    rounds: int = 3
    num_pictures: int = 10_000

    @property
    def source(self) -> Source:
        """Return the pictures that all systems store."""
        return Source(Dataset("pictures", pictures.picture, self.num_pictures), self.directory)


class Stores:
    """What is read, each written and compared when it is first asked for."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._paths: dict[str, Path] = {}

    def __getitem__(self, name: str) -> Path:
        if name not in self._paths:
            path = self._settings.directory / f"pictures-{name.replace(' ', '-')}"
            in_fresh_process(_write, name, path, self._settings.source)
            self._paths[name] = path
        return self._paths[name]

    def close(self) -> None:
        """Delete all that were written."""
        for path in self._paths.values():
            pictures.remove(path)


def _write(name: str, path: Path, source: Source) -> None:
    pictures.remove(path)
    records = source.load()
    pictures.STORES[name](path, records)
    for way in pictures.WAYS.values():
        if way.store == name:
            pictures.check_stored(way.open(path, _MODES["stored"]), records)


def _write_rate(name: str, path: Path, source: Source) -> float:
    if not _records:
        _records.extend(source.load())
        _written_seconds(name, path, _records[:_WARM_UP_PICTURES])
    return len(_records) / _written_seconds(name, path, _records)


def _written_seconds(name: str, path: Path, records: list[bytes]) -> float:
    pictures.remove(path)
    start = time.perf_counter()
    pictures.STORES[name](path, records)
    seconds = time.perf_counter() - start
    pictures.remove(path)
    return seconds


def _open(way: Way, path: Path, mode: Mode, source: Source) -> None:
    settle_allocator()
    _touch(path)
    epoch = way.open(path, mode)
    check = pictures.check_decoded if mode.decoded else pictures.check_stored
    check(epoch, source.load())
    _epochs.append(epoch)


def _touch(path: Path) -> None:
    """Read all files into the page cache."""
    for file in pictures.files(path):
        file.read_bytes()


def _epoch_rate(seed: int) -> float:
    return rate((len(labels) for _, labels in _epochs[0](seed)), math.inf)


def _start_seconds(program: str) -> float:
    """Return the time until a new process that runs `program` has printed a line."""
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=Path(__file__).parent, stdout=subprocess.PIPE
    ) as process:
        line = process.stdout.readline() if process.stdout else b""
        seconds = time.perf_counter() - start
    if not line or process.returncode:
        message = f"{program}: ended with {process.returncode}"
        raise RuntimeError(message)
    return seconds


def _ask_epochs(key: str, settings: Settings, stores: Stores) -> list[Row]:
    mode = _MODES[key]
    ways = [way for way in pictures.WAYS.values() if way.has_workers or not mode.num_workers]
    processes: dict[str, ProcessPoolExecutor] = {way.system: worker() for way in ways}
    for way in ways:
        process = processes[way.system]
        process.submit(_open, way, stores[way.store], mode, settings.source).result()

    def window(system: str) -> Callable[[int], float]:
        return lambda seed: processes[system].submit(_epoch_rate, seed).result()

    found = in_rounds(settings.rounds, {system: window(system) for system in processes})
    for process in processes.values():
        process.shutdown()
    return [Row(QUESTIONS[key], way.system, found[way.system], way.note) for way in ways]


def _ask_writers(settings: Settings) -> list[Row]:
    processes = {name: worker() for name in pictures.STORES}

    def window(name: str) -> Callable[[int], float]:
        path = settings.directory / f"window-{name.replace(' ', '-')}"
        arguments = (name, path, settings.source)
        return lambda _: processes[name].submit(_write_rate, *arguments).result()

    found = in_rounds(settings.rounds, {name: window(name) for name in pictures.STORES})
    for process in processes.values():
        process.shutdown()
    return [Row(QUESTIONS["write"], name, values) for name, values in found.items()]


def _ask_sizes(settings: Settings, stores: Stores) -> list[Row]:
    num_bytes = {
        name: sum(file.stat().st_blocks for file in pictures.files(stores[name])) * _BLOCK_BYTES
        for name in pictures.STORES
    }
    return [
        Row(QUESTIONS["size"], name, (size / settings.num_pictures,))
        for name, size in num_bytes.items()
    ]


def _ask_counts(stores: Stores) -> list[Row]:
    return [
        Row(QUESTIONS["files"], name, (len(pictures.files(stores[name])),))
        for name in pictures.STORES
    ]


def _ask_starts(settings: Settings, stores: Stores) -> list[Row]:
    programs = {_REFERENCE: "import torch.utils.data; print(torch.__version__, flush=True)"}
    for way in pictures.WAYS.values():
        path = stores[way.store]
        _touch(path)
        programs[way.system] = (
            f"import pictures; pictures.first_batch({way.system!r}, {str(path)!r})"
        )

    def window(program: str) -> Callable[[int], float]:
        return lambda _: _start_seconds(program)

    windows = {system: window(program) for system, program in programs.items()}
    notes = {way.system: way.note for way in pictures.WAYS.values()}
    return [
        Row(QUESTIONS["start"], system, values, notes.get(system, "the interpreter and torch"))
        for system, values in in_rounds(settings.rounds, windows).items()
    ]


def ask(keys: list[str], settings: Settings) -> Iterator[list[Row]]:
    """Yield the rows of each question, and delete the stores in the end."""
    settings.source.prepare()
    stores = Stores(settings)
    others: dict[str, Callable[[], list[Row]]] = {
        "write": lambda: _ask_writers(settings),
        "size": lambda: _ask_sizes(settings, stores),
        "files": lambda: _ask_counts(stores),
        "start": lambda: _ask_starts(settings, stores),
    }
    for key in keys:
        yield others[key]() if key in others else _ask_epochs(key, settings, stores)
    stores.close()


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    arguments = command.parser(__doc__, "pictures", "QUESTION", QUESTIONS).parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    settings = Settings(arguments.dir)
    if arguments.quick:
        settings = Settings(arguments.dir, 2, 2_000)
    described = {"rounds": settings.rounds, "pictures": settings.num_pictures}
    names = ("ingot-data", "webdataset", "datasets", "pillow", "torch")
    versions = {name: importlib.metadata.version(name) for name in names}
    command.publish(
        arguments, described, versions, ask(arguments.only or list(QUESTIONS), settings)
    )


if __name__ == "__main__":
    main()
