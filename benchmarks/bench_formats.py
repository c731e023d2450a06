"""How fast are TFRecord, tar, MDS and LitData read in place, and tars converted?"""

from __future__ import annotations

import importlib.metadata
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import command
import conversions
import device
import formats
import pictures
from data import Dataset, Source
from formats import FORMATS
from measure import in_fresh_process, in_rounds, rate, settle_allocator, worker
from peers import BATCH
from report import Goal, Question, Row

_READ = 5
_CONVERT = 1 / 3
_FIRST = "ingot, first time"
_LARGE = f"JPEG of {pictures.SIDE} x {pictures.SIDE}, 11 KB, with label and caption"
_KINDS = {"batch": f"random batches of {BATCH}", "one": "one at a time, at random"}


def _read_question(key: str, kind: str) -> Question:
    one = FORMATS[key]
    goals = (Goal(_READ, one.package),) if one.one else ()
    title = f"{one.title}: {_KINDS[kind]}"
    return Question(f"{key}-{kind}", title, "rows/s", goals=goals)


def _epoch_question(key: str) -> Question:
    title = f"{FORMATS[key].title}: a shuffled epoch, cold files"
    return Question(f"{key}-epoch", title, "s", higher_is_better=False)


_CONVERSION = Question(
    "convert",
    "tars into a data set, not synced",
    "s",
    higher_is_better=False,
    goals=tuple(
        Goal(_CONVERT, other, ours)
        for ours in ("ingot", conversions.UNCHECKED)
        for other in ("litdata", "streaming")
    ),
)
QUESTIONS = {
    question.key: question
    for question in (
        *(_read_question(key, kind) for key in FORMATS for kind in _KINDS),
        *map(_epoch_question, FORMATS),
        _CONVERSION,
    )
}

Read = Callable[[list[int]], Any]
_reads: list[Read] = []


@dataclass(frozen=True)
class Settings:
    """How often and how many."""

    directory: Path
    rounds: int = 4
    window_s: float = 1.0
    num_pictures: int = 20_000

    @property
    def source(self) -> Source:
        """Return the pictures that all formats hold."""
        return Source(Dataset("pictures", pictures.picture, self.num_pictures), self.directory)

    @property
    def few(self) -> Source:
        """Return pictures to warm up with."""
        return Source(Dataset("few", pictures.picture, BATCH), self.directory)

    def store(self, key: str) -> Path:
        """Return where a format is."""
        return self.directory / "formats" / key

    def small(self, key: str) -> Path:
        """Return where a few pictures of a format are."""
        return self.directory / "formats" / f"{key}-few"


def _write(key: str, settings: Settings) -> None:
    for path, source in (
        (settings.store(key), settings.source),
        (settings.small(key), settings.few),
    ):
        formats.write(key, path, source.load())
        formats.index_beside(path)
        formats.open_ingot(key, path)


def _wanted(source: Source, indices: list[int]) -> list[formats.Sample]:
    records = source.some(indices)
    return [
        (record, pictures.label(k), formats.sentence(k))
        for k, record in zip(indices, records, strict=True)
    ]


def _check(found: list[formats.Sample], expected: list[formats.Sample], system: str) -> None:
    plain = [(bytes(image), int(np.ravel(number)[0]), text) for image, number, text in found]
    if plain != expected:
        message = f"{system}: the rows read differ from those written"
        raise ValueError(message)


def _opened(key: str, kind: str, system: str, settings: Settings) -> None:
    """Open a store in this process, check some rows of it, and keep what reads."""
    settle_allocator()
    path = settings.store(key)
    for file in pictures.files(path):
        file.read_bytes()
    if system == "ingot":
        formats.index_beside(path)
        ds = formats.open_ingot(key, path)
        names = list(FORMATS[key].spec)

        def rows(indices: list[int]) -> list[formats.Sample]:
            batch = ds[indices]
            return list(zip(*(batch[name] for name in names), strict=True))

        one = ds.__getitem__
        reads: dict[str, Read] = {
            "batch": ds.__getitem__,
            "one": lambda indices: [one(index) for index in indices],
        }
    else:
        opener = FORMATS[key].one
        if opener is None:
            raise ValueError(key)
        sample = opener(path)

        def rows(indices: list[int]) -> list[formats.Sample]:
            return [sample(index) for index in indices]

        reads = {"batch": rows, "one": rows}
    asked = np.random.default_rng(0).integers(0, settings.num_pictures, BATCH).tolist()
    _check(rows(asked), _wanted(settings.source, asked), system)
    _reads.append(reads[kind])


def _read_rate(count: int, seconds: float, seed: int) -> float:
    rng = np.random.default_rng(seed)

    def steps() -> Iterator[int]:
        while True:
            _reads[0](rng.integers(0, count, BATCH).tolist())
            yield BATCH

    return rate(steps(), seconds)


def _ask_reads(question: Question, key: str, kind: str, settings: Settings) -> list[Row]:
    one = FORMATS[key]
    processes = {"ingot": worker()}
    if one.one is not None:
        processes[one.package] = worker()
    for system, process in processes.items():
        process.submit(_opened, key, kind, system, settings).result()

    def window(system: str) -> Callable[[int], float]:
        asked = (settings.num_pictures, settings.window_s)
        return lambda seed: processes[system].submit(_read_rate, *asked, seed).result()

    found = in_rounds(settings.rounds, {system: window(system) for system in processes})
    for process in processes.values():
        process.shutdown()
    rows = [
        Row(question, system, values, one.note if system == one.package else "")
        for system, values in found.items()
    ]
    return rows if one.one else [*rows, Row(question, one.package, (), one.note)]


def _epoch_seconds(key: str, system: str, settings: Settings, seed: int) -> float:
    """Return how long an epoch takes from the opening on, in a process that had one before."""
    path = settings.store(key)

    def epoch(at: Path) -> Iterator[formats.Sample]:
        if system == FORMATS[key].package:
            return FORMATS[key].epoch(at, seed)
        return formats.epoch_ingot(key, at, seed)

    formats.index_beside(settings.small(key))
    for _ in epoch(settings.small(key)):
        pass
    index = formats.index_beside(path, anew=system == _FIRST)
    resident = device.evict([*pictures.files(path), *pictures.files(index)])
    if resident > 0.01:
        message = f"{path}: {resident:.0%} of the files cannot be dropped from the page cache"
        raise RuntimeError(message)
    settle_allocator()
    num_rows = num_bytes = 0
    start = time.perf_counter()
    for image, _, _ in epoch(path):
        num_rows += 1
        num_bytes += len(image)
    seconds = time.perf_counter() - start
    if (num_rows, num_bytes) != (settings.num_pictures, settings.source.payload_bytes()):
        message = f"{system}: {num_rows} rows of {num_bytes} bytes differ from those written"
        raise ValueError(message)
    return seconds


def _ask_epochs(question: Question, key: str, settings: Settings) -> list[Row]:
    systems = ("ingot", _FIRST, FORMATS[key].package)

    def window(system: str) -> Callable[[int], float]:
        return lambda seed: in_fresh_process(_epoch_seconds, key, system, settings, seed)

    found = in_rounds(settings.rounds, {system: window(system) for system in systems})
    notes = {"ingot": "with its index", _FIRST: "the index is made too"}
    return [Row(question, name, values, notes.get(name, "")) for name, values in found.items()]


def _ask_conversion(settings: Settings) -> list[Row]:
    tars = (settings.small("tar"), settings.store("tar"))
    for file in pictures.files(tars[1]):
        file.read_bytes()

    def window(system: str) -> Callable[[int], float]:
        return lambda _: in_fresh_process(conversions.seconds, system, tars, settings.num_pictures)

    found = in_rounds(
        settings.rounds, {system: window(system) for system in conversions.CONVERTERS}
    )
    return [
        Row(_CONVERSION, system, values, conversions.NOTES[system])
        for system, values in found.items()
    ]


def ask(keys: list[str], settings: Settings) -> Iterator[list[Row]]:
    """Yield the rows of each question, and delete the stores in the end."""
    settings.source.prepare()
    settings.few.prepare()
    for key in FORMATS:
        in_fresh_process(_write, key, settings)
    for asked in keys:
        key, _, kind = asked.partition("-")
        if asked == "convert":
            yield _ask_conversion(settings)
        elif kind == "epoch":
            yield _ask_epochs(QUESTIONS[asked], key, settings)
        else:
            yield _ask_reads(QUESTIONS[asked], key, kind, settings)
    shutil.rmtree(settings.directory / "formats")


def main() -> None:
    """Measure, print, and write the JSON file and the chart."""
    arguments = command.parser(__doc__, "formats", "QUESTION", QUESTIONS).parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    settings = Settings(arguments.dir)
    if arguments.quick:
        settings = Settings(arguments.dir, 2, 0.3, 2_000)
    described = {
        "data": _LARGE,
        "rounds": settings.rounds,
        "window_s": settings.window_s,
        "rows": settings.num_pictures,
    }
    formats.streaming()
    names = ("ingot-data", "tfrecord", "webdataset", "mosaicml-streaming", "litdata")
    versions = {name: importlib.metadata.version(name) for name in names}
    command.publish(
        arguments, described, versions, ask(arguments.only or list(QUESTIONS), settings)
    )


if __name__ == "__main__":
    main()
