"""The questions about record files, and how each is put to every system.

Measurements are short windows, taken in turn from all systems and several times over, so that a
noisy machine disturbs all of them alike; the best window counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import device
import measure
from data import DATASETS, Dataset, Source
from measure import Store, WarmReader, in_fresh_process
from peers import SYSTEMS
from report import Goal, Question, Row

BATCH_4KB = Question(
    "batch-4kb", "random batches of 64, 4 KB, uncompressed", goals=(Goal(2, "bagz"),)
)
ONE_4KB = Question("one-4kb", "random one at a time, 4 KB", goals=(Goal(1, "bagz"),))
SCAN_4KB = Question("scan-4kb", "sequential, 4 KB", goals=(Goal(1.5, "best peer"),))
WRITE_4KB = Question("write-4kb", "write to close(), 4 KB", goals=(Goal(1, "best peer"),))
WRITE_SYNCED_4KB = Question("write-synced-4kb", "write and fsync, 4 KB")
COLD_BATCH_4KB = Question(
    "cold-batch-4kb", "cold, random batches of 64, 4 KB", goals=(Goal(5, "bagz"), Goal(0.7, "fio"))
)
COLD_STREAM_4KB = Question(
    "cold-stream-4kb", "cold, index stream, 4 KB", goals=(Goal(5, "bagz"), Goal(0.7, "fio"))
)
BATCH_TEXT = Question(
    "batch-text", "random batches of 64, 1 KB text, compressed", dataset="text",
    goals=(Goal(3, "bagz"),),
)  # fmt: skip
SIZE_TEXT = Question(
    "size-text", "size on disk, 1 KB text, compressed", unit="of the size", dataset="text",
    higher_is_better=False, goals=(Goal(0.36),),
)  # fmt: skip
BATCH_100KB = Question(
    "batch-100kb", "random batches of 64, 100 KB", dataset="100kb", goals=(Goal(1, "bagz"),)
)
WRITE_100KB = Question(
    "write-100kb", "write to close(), 100 KB", dataset="100kb", goals=(Goal(1, "bagz"),)
)
OVERHEAD = Question(
    "overhead", "overhead at 1 KB records", unit="% of the size", dataset="1kb",
    higher_is_better=False, goals=(Goal(1.2),),
)  # fmt: skip
OPEN_TIME = Question(
    "open-time", "opening many records", unit="ms", dataset="words",
    higher_is_better=False, goals=(Goal(5),),
)  # fmt: skip
OPEN_BYTES = Question(
    "open-bytes", "read calls while opening many records", unit="KB", dataset="words",
    higher_is_better=False, goals=(Goal(1000),),
)  # fmt: skip
MEMORY = Question(
    "memory", "growth of the writer's memory", unit="MB", dataset="1kb", higher_is_better=False
)

QUESTIONS = (
    WRITE_4KB, WRITE_SYNCED_4KB, BATCH_4KB, ONE_4KB, SCAN_4KB, COLD_BATCH_4KB, COLD_STREAM_4KB,
    BATCH_TEXT, SIZE_TEXT, WRITE_100KB, BATCH_100KB, OVERHEAD, OPEN_TIME, OPEN_BYTES, MEMORY,
)  # fmt: skip

_KINDS = {
    BATCH_4KB: "batch",
    ONE_4KB: "one",
    SCAN_4KB: "scan",
    BATCH_TEXT: "batch",
    BATCH_100KB: "batch",
    COLD_BATCH_4KB: "batch",
    COLD_STREAM_4KB: "stream",
}
_WRITES = {"4kb": WRITE_4KB, "100kb": WRITE_100KB}
_COLD = (COLD_BATCH_4KB, COLD_STREAM_4KB)
_ONLY_BATCHES = "ingot read()"
_ONLY_WRITES = "ingot append()"
_ONLY_COLD = "bagz threads"


@dataclass(frozen=True)
class Settings:
    """How long and how large."""

    directory: Path
    systems: tuple[str, ...]
    questions: tuple[Question, ...] = QUESTIONS
    rounds: int = 5
    slow_rounds: int = 3
    window_s: float = 0.3
    cold_window_s: float = 0.8
    sizes: tuple[tuple[str, int], ...] = ()
    open_records: int = 1_000_000
    memory_bytes: int = 2 << 30

    def dataset(self, name: str) -> Dataset:
        """Return a data set at the size of this run."""
        full = self.open_records if name == "words" else DATASETS[name].size
        return DATASETS[name].resized(dict(self.sizes).get(name, full))

    def stores(self, dataset: Dataset, *, also: Iterable[str] = ()) -> list[Store]:
        """Return the stores of the systems that have files of their own, and `also` of variants."""
        names = [n for n in self.systems if SYSTEMS[n].variant_of is None or n in tuple(also)]
        return [Store(name, dataset.name, dataset.size, self.directory) for name in names]


def ask(settings: Settings) -> Iterator[list[Row]]:
    """Put all questions, data set by data set, and yield the rows of each."""
    for name in ("4kb", "text", "100kb"):
        wanted = [question for question in settings.questions if question.dataset == name]
        if wanted:
            yield from _ask_about(settings, settings.dataset(name), wanted)
    if OVERHEAD in settings.questions:
        yield _overhead(settings)
    if OPEN_TIME in settings.questions or OPEN_BYTES in settings.questions:
        yield from _opening(settings)
    if MEMORY in settings.questions:
        yield _memory(settings)


def _ask_about(settings: Settings, dataset: Dataset, wanted: list[Question]) -> Iterator[list[Row]]:
    source = Source(dataset, settings.directory)
    source.prepare()
    if WRITE_SYNCED_4KB in wanted:
        yield _writes(settings, source, WRITE_SYNCED_4KB)
    write = _WRITES.get(dataset.name, WRITE_4KB)
    rows = _writes(settings, source, write, rounds=None if write in wanted else 1)
    if write in wanted:
        yield rows
    shares = _shares(settings, source)
    if SIZE_TEXT in wanted:
        yield [Row(SIZE_TEXT, system, (share,)) for system, share in shares.items()]
    notes = {system: f"{share:.3f} of the size" for system, share in shares.items()}
    warm = [question for question in wanted if question in _KINDS and question not in _COLD]
    yield from _warm_reads(settings, source, warm, notes if dataset.compressed else {})
    for question in _COLD:
        if question in wanted:
            yield _cold_reads(settings, source, question)
    for store in settings.stores(dataset):
        store.system.remove(store.path)


def _interleaved(
    stores: list[Store], rounds: int, window: Callable[[Store, int], float]
) -> dict[str, list[float]]:
    """Return `rounds` windows of each store, taken in turn."""
    windows: dict[str, list[float]] = {store.system_name: [] for store in stores}
    for seed in range(rounds):
        for store in stores:
            windows[store.system_name].append(window(store, seed))
    return windows


def _rows(
    question: Question, windows: dict[str, list[float]], notes: dict[str, str] | None = None
) -> list[Row]:
    notes = notes or {}
    return [
        Row(question, name, tuple(values), notes.get(name, "")) for name, values in windows.items()
    ]


def _writes(
    settings: Settings, source: Source, question: Question, rounds: int | None = None
) -> list[Row]:
    """Write in turn; what the last round wrote stays for the questions that read."""
    synced = question is WRITE_SYNCED_4KB
    variants = () if rounds == 1 else (_ONLY_WRITES,)

    def window(store: Store, _: int) -> float:
        seconds = in_fresh_process(measure.write_seconds, store, source, synced=synced)
        return source.dataset.size / seconds

    stores = settings.stores(source.dataset, also=variants)
    return _rows(question, _interleaved(stores, rounds or settings.slow_rounds, window))


def _shares(settings: Settings, source: Source) -> dict[str, float]:
    """Return the size of each system's files in terms of the records'."""
    return {
        store.system_name: store.system.size(store.path) / source.payload_bytes()
        for store in settings.stores(source.dataset)
    }


def _warm_reads(
    settings: Settings, source: Source, questions: list[Question], notes: dict[str, str]
) -> Iterator[list[Row]]:
    if not questions:
        return
    stores = settings.stores(source.dataset, also=(_ONLY_BATCHES,))
    readers = {store.system_name: WarmReader(store, source) for store in stores}
    for question in questions:
        kind = _KINDS[question]

        def window(store: Store, seed: int, kind: str = kind) -> float:
            return readers[store.system_name].rate(kind, settings.window_s, seed)

        asked = [s for s in stores if kind == "batch" or s.system_name != _ONLY_BATCHES]
        yield _rows(question, _interleaved(asked, settings.rounds, window), notes)
    for reader in readers.values():
        reader.close()


def _cold_reads(settings: Settings, source: Source, question: Question) -> list[Row]:
    kind, seconds = _KINDS[question], settings.cold_window_s

    def window(store: Store, seed: int) -> float:
        if store.system_name == "fio":
            return device.fio_iops([source.path], seconds)
        return in_fresh_process(measure.cold_rate, store, source, kind, seconds, seed)

    stores = settings.stores(source.dataset, also=(_ONLY_COLD,))
    if not device.has_fio():
        windows = _interleaved(stores, settings.slow_rounds, window)
        return [*_rows(question, windows), Row(question, "fio", (), device.FIO_HINT)]
    stores.append(Store("fio", source.dataset.name, source.dataset.size, settings.directory))
    notes = {"fio": "direct, io_uring, depth 64"}
    return _rows(question, _interleaved(stores, settings.slow_rounds, window), notes)


def _overhead(settings: Settings) -> list[Row]:
    dataset = settings.dataset("1kb")
    payload = 1024 * dataset.size
    rows = []
    for store in settings.stores(dataset):
        stored = in_fresh_process(measure.stored_bytes, store, dataset)
        store.system.remove(store.path)
        rows.append(Row(OVERHEAD, store.system_name, (100 * (stored - payload) / payload,)))
    return rows


def _opening(settings: Settings) -> Iterator[list[Row]]:
    dataset = settings.dataset("words")
    small = DATASETS["words"].resized(10)
    answers: dict[str, list[measure.Opening]] = {}
    for store in settings.stores(dataset):
        probe = Store(store.system_name, "warm-up", small.size, settings.directory)
        with measure.worker() as process:
            process.submit(measure.stored_bytes, probe, small).result()
            process.submit(measure.stored_bytes, store, dataset).result()
        answers[store.system_name] = [
            in_fresh_process(measure.opening, store, probe) for _ in range(settings.slow_rounds)
        ]
        for written in (store, probe):
            written.system.remove(written.path)
    times = {name: [1e3 * each.seconds for each in found] for name, found in answers.items()}
    sizes = {name: [each.num_bytes / 1e3 for each in found] for name, found in answers.items()}
    notes = dict.fromkeys(answers, f"{dataset.size:,} records")
    for question, windows in ((OPEN_TIME, times), (OPEN_BYTES, sizes)):
        if question in settings.questions:
            yield _rows(question, windows, notes)


def _memory(settings: Settings) -> list[Row]:
    size = settings.memory_bytes
    rows = []
    for store in settings.stores(DATASETS["4kb"]):
        growth = in_fresh_process(measure.writer_memory, store, size)
        mapped = "counts the pages of its mapping" if store.system_name == "lmdb" else ""
        note = f"{size / 2**30:.3g} GB written; {mapped}".rstrip("; ")
        rows.append(Row(MEMORY, store.system_name, (growth / 1e6,), note))
    return rows
