"""Single measurements, each run in a process that has touched one system only."""

from __future__ import annotations

import collections
import gc
import itertools
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import device
from data import Dataset, Source
from peers import BATCH, SYSTEMS, Reader, System, in_batches

_SCAN_STEP = 1000
_WARM_UP_RECORDS = 256
_COLD_STRIDE = 64
_COLD_PASSES = 20


@dataclass(frozen=True)
class Store:
    """The place of one system's copy of a data set."""

    system_name: str
    dataset_name: str
    size: int
    directory: Path

    @property
    def system(self) -> System:
        """Return the system that reads and writes here."""
        return SYSTEMS[self.system_name]

    @property
    def path(self) -> Path:
        """Return the path, which a system shares with its variants."""
        owner = self.system.variant_of or self.system_name
        return self.directory / f"{self.dataset_name}-{owner}{self.system.suffix}"


def worker() -> ProcessPoolExecutor:
    """Return a fresh process that runs one thing after the other."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def in_fresh_process(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return `function(*args, **kwargs)` as computed by a process that ends with it."""
    with worker() as process:
        return process.submit(function, *args, **kwargs).result()


def in_rounds(
    num_rounds: int, windows: dict[str, Callable[[int], float]]
) -> dict[str, tuple[float, ...]]:
    """Return what `windows`, given a seed, have answered, one after the other in each round."""
    found: dict[str, list[float]] = {system: [] for system in windows}
    for seed in range(num_rounds):
        for system, window in windows.items():
            found[system].append(window(seed))
    return {system: tuple(values) for system, values in found.items()}


def write_seconds(store: Store, source: Source, *, synced: bool) -> float:
    """Write the records of `source` anew and return the time to close (or to the disk)."""
    system, compressed = store.system, source.dataset.compressed
    write = system.write_synced if synced else system.write
    records = source.load()
    warm_up = store.path.with_name(f"warm-up-{store.path.name}")
    system.remove(warm_up)
    write(warm_up, records[:_WARM_UP_RECORDS], compressed=compressed)
    system.remove(warm_up)
    system.remove(store.path)
    start = time.perf_counter()
    write(store.path, records, compressed=compressed)
    seconds = time.perf_counter() - start
    # The next writer gets the same pages of memory, and no write-back of others in its window.
    device.evict(system.files(store.path))
    return seconds


def stored_bytes(store: Store, dataset: Dataset) -> int:
    """Write the records of `dataset` as they are computed and return the size on the disk."""
    store.system.remove(store.path)
    store.system.write(store.path, dataset.records(), compressed=dataset.compressed)
    return store.system.size(store.path)


class WarmReader:
    """A reader in a process of its own, whose file is in the page cache."""

    def __init__(self, store: Store, source: Source) -> None:
        """Start the process, open the file and check what is read from it."""
        self._process = worker()
        self._process.submit(_open_warm, store, source).result()

    def rate(self, kind: str, seconds: float, seed: int) -> float:
        """Return the records a second in one window."""
        return self._process.submit(_warm_rate, kind, seconds, seed).result()

    def close(self) -> None:
        """End the process."""
        self._process.shutdown()


_warm: list[tuple[Reader, int]] = []


def settle_allocator() -> None:
    """Free one large block, after which glibc keeps freed memory instead of returning it.

    A process that has worked for a while is in this state; a fresh one would pay a page fault
    for every page of every batch.
    """
    block = bytearray((32 << 20) - 8192)
    del block


def _open_warm(store: Store, source: Source) -> None:
    settle_allocator()
    for file in store.system.files(store.path):
        file.read_bytes()
    reader = store.system.open(store.path)
    _check(reader, source)
    _warm.append((reader, store.size))


def _warm_rate(kind: str, seconds: float, seed: int) -> float:
    reader, size = _warm[0]
    indices = np.random.default_rng(seed).permutation(size).tolist()
    return rate(
        itertools.chain.from_iterable(itertools.repeat(_Steps(reader, kind, indices))), seconds
    )


def cold_rate(store: Store, source: Source, kind: str, seconds: float, seed: int) -> float:
    """Return the records a second of a reader whose data set is far larger than memory.

    The file is dropped from the page cache before each of several passes, and the records of a
    pass lie so far apart that none is in memory because the kernel read around another.
    """
    settle_allocator()
    rng = np.random.default_rng(seed)
    num_records, elapsed = 0, 0.0
    for _ in range(_COLD_PASSES):
        apart = np.arange(rng.integers(_COLD_STRIDE), store.size, _COLD_STRIDE)
        indices = rng.permutation(apart).tolist()
        found = _cold_pass(store, kind, indices)
        num_records += len(indices)
        elapsed += len(indices) / found
        if elapsed >= seconds:
            break
    _check(store.system.open(store.path), source)
    return num_records / elapsed


def _cold_pass(store: Store, kind: str, indices: list[int]) -> float:
    gc.collect()  # Bagz and Lance have no close; their mappings go with their last reference.
    resident = device.evict(store.system.files(store.path))
    if resident > 0.01:
        message = f"{store.path}: {resident:.0%} of the file cannot be dropped from the page cache"
        raise RuntimeError(message)
    reader = store.system.open(store.path)
    found = rate(iter(_Steps(reader, kind, indices)), math.inf)
    reader.close()
    return found


class _Steps:
    """Reads along `indices` (a scan: in file order) and yields the records read since."""

    def __init__(self, reader: Reader, kind: str, indices: list[int]) -> None:
        self._reader = reader
        self._indices = indices
        self._kind = kind
        self._batched = list(in_batches(indices))

    def __iter__(self) -> Iterator[int]:
        ways = {
            "batch": self._batches,
            "one": self._ones,
            "scan": self._scan,
            "stream": self._stream,
        }
        return ways[self._kind]()

    def _batches(self) -> Iterator[int]:
        read = self._reader.batch
        for indices in self._batched:
            read(indices)
            yield len(indices)

    def _ones(self) -> Iterator[int]:
        one = self._reader.one
        for indices in self._batched:
            for index in indices:
                one[index]
            yield len(indices)

    def _scan(self) -> Iterator[int]:
        return self._drain(iter(self._reader.scan()), _SCAN_STEP)

    def _stream(self) -> Iterator[int]:
        return self._drain(iter(self._reader.stream(self._indices)), BATCH)

    def _drain(self, records: Iterator[Any], step: int) -> Iterator[int]:
        for start in range(0, len(self._indices), step):
            collections.deque(itertools.islice(records, step), maxlen=0)
            yield min(step, len(self._indices) - start)


def rate(steps: Iterator[int], seconds: float) -> float:
    """Return how many units a second the steps do, each of which tells its own."""
    num_records = 0
    start = time.perf_counter()
    for count in steps:
        num_records += count
        if time.perf_counter() - start >= seconds:
            break
    return num_records / (time.perf_counter() - start)


def _check(reader: Reader, source: Source) -> None:
    """Compare some records, read in every way, with the source."""
    wanted = np.random.default_rng(0).integers(0, source.dataset.size, BATCH).tolist()
    expected = source.some(wanted)
    first = source.some(range(BATCH))
    found = {
        "batch": reader.batch(wanted),
        "one": [reader.one[index] for index in wanted],
        "stream": reader.stream(wanted),
    }
    for kind, records in found.items():
        if [bytes(record) for record in records] != expected:
            message = f"{kind}: the records read differ from those written"
            raise ValueError(message)
    if [bytes(record) for record in itertools.islice(reader.scan(), BATCH)] != first:
        message = "scan: the records read differ from those written"
        raise ValueError(message)


@dataclass(frozen=True)
class Opening:
    """What it took to open a file, up to the first read of a record."""

    seconds: float
    num_bytes: int


def opening(store: Store, small: Store) -> Opening:
    """Open `store` in a process that has opened `small` before, so that code is loaded."""
    reader = small.system.open(small.path)
    reader.batch([0])
    before = device.bytes_read()
    start = time.perf_counter()
    opened = store.system.open(store.path)
    seconds = time.perf_counter() - start
    num_bytes = device.bytes_read() - before
    opened.close()
    reader.close()
    return Opening(seconds, num_bytes)


def writer_memory(store: Store, num_bytes: int) -> int:
    """Write `num_bytes` in records of 4 KB and return by how much the process grew."""
    dataset = Dataset("4kb", _memory_record, num_bytes // 4096)
    system = store.system
    system.remove(store.path)
    system.write(
        store.path, itertools.islice(dataset.records(), _WARM_UP_RECORDS), compressed=False
    )
    system.remove(store.path)
    before = device.resident_bytes()
    device.reset_peak()
    system.write(store.path, dataset.records(), compressed=False)
    growth = device.peak_resident_bytes() - before
    system.remove(store.path)
    return growth


_MEMORY_BLOCK = bytes(range(256)) * 16


def _memory_record(index: int) -> bytes:
    """Return 4 KB that begin with `index`."""
    return index.to_bytes(8, "little") + _MEMORY_BLOCK[8:]
