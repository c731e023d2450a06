"""How long does a whole epoch take, over files that are not in memory?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import command
import device
import epochs
import shards
from data import Dataset
from epochs import Way
from measure import in_fresh_process, in_rounds, worker
from peers import BATCH, installed
from report import Goal, Question, Row

_AUTOMATIC = Way("ingot", "ingot")
_URING = Way("ingot uring", "ingot", "uring")
_MAPPED = Way("ingot mmap", "ingot", "mmap")
_BAGZ = Way("bagz", "bagz")
_EPOCH_GOALS = {"1 %": (Goal(0.1),), "all": (Goal(1, "bagz"),)}


def _timed(name: str) -> Question:
    return Question(
        f"epoch {name}", f"cold epoch, random batches of 64 x 4 KB: to {name}", unit="s",
        higher_is_better=False, goals=_EPOCH_GOALS.get(name, ()),
    )  # fmt: skip


EPOCH = {name: _timed(name) for name in epochs.SHARES}
STREAM = [
    Question(
        f"stream {k + 1}", f"cold epoch, index stream, 4 KB: quarter {k + 1}",
        goals=(Goal(150_000),), versus="fio 2 jobs",
    )
    for k in range(epochs.QUARTERS)
]  # fmt: skip
LARGER = Question(
    "larger", "as of a file larger than memory, 4 KB", goals=(Goal(0.8, "fio 2 jobs"),),
    versus="fio 2 jobs",
)  # fmt: skip
SHARDS = Question(
    "shards", "one random record of each of 64 cold files, 4 KB", goals=(Goal(0.7, "fio"),),
    versus="fio",
)  # fmt: skip
SHARDS_FIRST = Question(
    "shards first", "open 64 cold files and read one record of each", unit="ms",
    higher_is_better=False,
)  # fmt: skip
OPEN = Question(
    "open", "open a data set of many files", unit="ms", higher_is_better=False, goals=(Goal(20),)
)
OPEN_FILES = Question(
    "open files", "files opened by that", unit="files", higher_is_better=False, goals=(Goal(2),)
)
OPEN_BATCH = Question(
    "open batch", "first 64 rows of that, at random", unit="ms", higher_is_better=False
)
MANY = Question(
    "many", "64 random rows of very many, 8 bytes, warm", unit="us", higher_is_better=False,
    goals=(Goal(2, "ingot one by one"),), versus="ingot one by one",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How long and how large."""

    directory: Path
    rounds: int = 3
    window_s: float = 2
    records: int = epochs.RECORDS.size
    words: int = epochs.WORDS.size
    shard_records: int = shards.SHARD_RECORDS
    many_shards: int = 10_000

    @property
    def dataset(self) -> Dataset:
        """Return the records of an epoch."""
        return epochs.RECORDS.resized(self.records)

    def written(self, way: Way, dataset: Dataset) -> Path:
        """Write a system's copy, and return its path."""
        store = way.store(dataset, self.directory)
        in_fresh_process(epochs.write, store, dataset)
        return store.path

    def fio(self, *files: Path) -> dict[str, Callable[[int], float]]:
        """Return windows of the bare device."""
        if not device.has_fio():
            print(device.FIO_HINT)
            return {}
        return {
            "fio": lambda _: device.fio_iops(list(files), self.window_s),
            "fio 2 jobs": lambda _: device.fio_iops(list(files), self.window_s, 2),
            "fio straddling": lambda _: device.fio_iops(
                list(files), self.window_s, straddling=True
            ),
        }


def _epoch(settings: Settings) -> Iterator[list[Row]]:
    dataset, ways = settings.dataset, (_AUTOMATIC, _URING, _MAPPED, _BAGZ)
    paths = [settings.written(way, dataset) for way in ways]
    found: dict[str, list[dict[str, float]]] = {way.label: [] for way in ways}
    in_order: list[float] = []
    for seed in range(settings.rounds):
        for way in ways:
            store = way.store(dataset, settings.directory)
            times = in_fresh_process(epochs.in_random_batches, store, dataset, way.access, seed)
            found[way.label].append(times)
        if device.has_fio():
            rate = device.fio_sequential(paths[0], settings.window_s)
            in_order.append(paths[0].stat().st_size / rate)
    for name, question in EPOCH.items():
        rows = [Row(question, way, tuple(t[name] for t in times)) for way, times in found.items()]
        if name == "all":
            rows.append(Row(question, "fio in order", tuple(in_order), "1 MB, depth 8"))
        yield rows


def _stream(settings: Settings) -> Iterator[list[Row]]:
    dataset, ways = settings.dataset, (_AUTOMATIC, _URING)
    path = settings.written(_AUTOMATIC, dataset)
    rates: dict[str, list[list[float]]] = {way.label: [] for way in ways}
    bare: dict[str, list[float]] = {}
    for seed in range(settings.rounds):
        for way in ways:
            store = way.store(dataset, settings.directory)
            window = in_fresh_process(epochs.in_a_stream, store, dataset, way.access, seed)
            rates[way.label].append(window)
        for name, measured in settings.fio(path).items():
            bare.setdefault(name, []).append(measured(seed))
    for k, question in enumerate(STREAM):
        rows = [Row(question, way, tuple(w[k] for w in found)) for way, found in rates.items()]
        yield rows + [Row(question, name, tuple(found)) for name, found in bare.items()]


def _larger(settings: Settings) -> Iterator[list[Row]]:
    """Read past the page cache, as is done if a file does not fit: its size does not matter."""
    dataset = settings.dataset
    path = settings.written(_URING, dataset)
    store = _URING.store(dataset, settings.directory)

    def stream(seed: int) -> float:
        rates = in_fresh_process(epochs.in_a_stream, store, dataset, "uring", seed)
        return len(rates) / sum(1 / rate for rate in rates)

    def batches(seed: int) -> float:
        times = in_fresh_process(epochs.in_random_batches, store, dataset, "uring", seed)
        return dataset.size / times["all"]

    windows = {"ingot": stream, "ingot batches": batches, **settings.fio(path)}
    found = in_rounds(settings.rounds, windows)
    yield [Row(LARGER, name, values) for name, values in found.items()]


def _shards(settings: Settings) -> Iterator[list[Row]]:
    directory = settings.directory / f"shards-{settings.shard_records}"
    in_fresh_process(shards.write_shards, directory, settings.shard_records)
    rates: dict[str, list[float]] = {}
    firsts: dict[str, list[float]] = {}
    files = sorted(directory.glob("*.ingot"))
    shards.read_through(files)
    bare = settings.fio(*files)
    for seed in range(settings.rounds):
        for way in (_AUTOMATIC, _URING):
            rate, first = in_fresh_process(
                shards.cold_rate, directory, settings.shard_records, way.access,
                settings.window_s, seed,
            )  # fmt: skip
            rates.setdefault(way.label, []).append(rate)
            firsts.setdefault(way.label, []).append(1e3 * first)
        for name, measured in bare.items():
            rates.setdefault(name, []).append(measured(seed))
    yield [Row(SHARDS, name, tuple(values)) for name, values in rates.items()]
    yield [Row(SHARDS_FIRST, name, tuple(values)) for name, values in firsts.items()]


def _opening(settings: Settings) -> Iterator[list[Row]]:
    sizes = {"ingot": settings.many_shards, "ingot 10 files": 10}
    folders = {name: settings.directory / f"links-{size}" for name, size in sizes.items()}
    for name, folder in folders.items():
        in_fresh_process(shards.write_links, folder, sizes[name])
    probe = folders["ingot 10 files"]
    found: dict[str, list[shards.Opening]] = {name: [] for name in sizes}
    for seed in range(settings.rounds):
        for name, folder in folders.items():
            found[name].append(in_fresh_process(shards.opening, folder, probe, seed))
    for question, field in (
        (OPEN, "milliseconds"),
        (OPEN_FILES, "num_files"),
        (OPEN_BATCH, "batch_milliseconds"),
    ):
        yield [
            Row(question, name, tuple(getattr(each, field) for each in all_of), f"{sizes[name]:,}")
            for name, all_of in found.items()
        ]


def _many(settings: Settings) -> Iterator[list[Row]]:
    dataset = epochs.WORDS.resized(settings.words)
    settings.written(_AUTOMATIC, dataset)
    with worker() as process:
        store = _AUTOMATIC.store(dataset, settings.directory)
        process.submit(epochs.open_warm, store, dataset).result()

        def window(*, batched: bool) -> Callable[[int], float]:
            return lambda seed: process.submit(
                epochs.warm_microseconds, batched=batched, seconds=0.5, seed=seed
            ).result()

        windows = {"ingot": window(batched=True), "ingot one by one": window(batched=False)}
        found = in_rounds(2 * settings.rounds, windows)
    note = f"{BATCH} of {dataset.size:,} rows"
    yield [Row(MANY, name, values, note) for name, values in found.items()]


PARTS: dict[str, Callable[[Settings], Iterator[list[Row]]]] = {
    "epoch": _epoch,
    "stream": _stream,
    "larger": _larger,
    "shards": _shards,
    "open": _opening,
    "many": _many,
}


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    parser = command.parser(__doc__, "epoch", "PART", PARTS)
    parser.add_argument("--rounds", type=int, help="how often each system has its turn")
    arguments = parser.parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    settings = Settings(arguments.dir)
    if arguments.quick:
        settings = Settings(
            arguments.dir, rounds=1, window_s=1, records=20_000, words=200_000, shard_records=512,
            many_shards=200,
        )  # fmt: skip
    described = {**vars(settings), "rounds": arguments.rounds or settings.rounds}
    del described["directory"]
    settings = Settings(arguments.dir, **described)
    answers = (rows for part in arguments.only or PARTS for rows in PARTS[part](settings))
    command.publish(arguments, described, installed(["ingot", "bagz"]), answers)
    print(f"load at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
