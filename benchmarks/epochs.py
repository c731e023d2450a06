"""Whole epochs over a file that is not in memory, as a training reads them."""

from __future__ import annotations

import collections
import importlib
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import device
from data import Dataset, half_random, word
from measure import Store, rate, settle_allocator
from peers import BATCH, Reader, in_batches

RECORDS = Dataset("epoch", half_random, 500_000)
WORDS = Dataset("many", word, 40_000_000)
SHARES = {"first batch": 0.0, "1 %": 0.01, "25 %": 0.25, "50 %": 0.5, "all": 1.0}
QUARTERS = 4


@dataclass(frozen=True)
class Way:
    """How one system reads: its own name, and what `INGOT_IO` says, if anything."""

    label: str
    system: str
    access: str = ""

    def store(self, dataset: Dataset, directory: Path) -> Store:
        """Return the place of the system's copy."""
        return Store(self.system, dataset.name, dataset.size, directory)


def write(store: Store, dataset: Dataset) -> None:
    """Write a data set, unless it is there from an earlier run, and force it to the disk."""
    if store.path.exists():
        return
    part = store.path.with_name(f"part-{store.path.name}")
    store.system.remove(part)
    store.system.write_synced(part, dataset.records(), compressed=dataset.compressed)
    for old, new in zip(store.system.files(part), store.system.files(store.path), strict=True):
        old.rename(new)
    if store.system_name == "bagz":
        part.with_suffix(".codec").rename(store.path.with_suffix(".codec"))


def _cold(store: Store, access: str) -> None:
    """Make this process ready, and drop the file from the page cache."""
    os.environ["INGOT_IO"] = access
    if store.system.package:
        importlib.import_module(store.system.name)
    settle_allocator()
    resident = device.evict(store.system.files(store.path))
    if resident > 0.01:
        message = f"{store.path}: {resident:.0%} of the file cannot be dropped from the page cache"
        raise RuntimeError(message)


def _check(reader: Reader, dataset: Dataset) -> None:
    wanted = np.random.default_rng(0).integers(0, dataset.size, BATCH).tolist()
    found = [bytes(record) for record in reader.batch(wanted)]
    if found != [dataset.record(index) for index in wanted]:
        message = "the records read differ from those written"
        raise ValueError(message)


def in_random_batches(store: Store, dataset: Dataset, access: str, seed: int) -> dict[str, float]:
    """Read every record once, from the opening of the file on.

    Returns after how many seconds each of `SHARES` had been read.
    """
    batches = list(in_batches(np.random.default_rng(seed).permutation(dataset.size).tolist()))
    _cold(store, access)
    ends = []
    start = time.perf_counter()
    reader = store.system.open(store.path)
    for indices in batches:
        reader.batch(indices)
        ends.append(time.perf_counter() - start)
    _check(reader, dataset)
    reader.close()
    return {name: ends[max(0, round(share * len(ends)) - 1)] for name, share in SHARES.items()}


def in_a_stream(store: Store, dataset: Dataset, access: str, seed: int) -> list[float]:
    """Read every record once by a stream of indices; return the rate in each quarter."""
    indices = np.random.default_rng(seed).permutation(dataset.size)
    _cold(store, access)
    step = -(-dataset.size // QUARTERS)
    rates = []
    start = time.perf_counter()
    reader = store.system.open(store.path)
    records = iter(reader.stream(indices))
    for _ in range(QUARTERS):
        collections.deque(itertools.islice(records, step), maxlen=0)
        now = time.perf_counter()
        rates.append(step / (now - start))
        start = now
    _check(reader, dataset)
    reader.close()
    return rates


_warm: list[tuple[Reader, int]] = []


def open_warm(store: Store, dataset: Dataset) -> None:
    """Open a file that is in the page cache."""
    settle_allocator()
    for file in store.system.files(store.path):
        with file.open("rb", buffering=0) as opened:
            while opened.read(1 << 24):
                pass
    reader = store.system.open(store.path)
    _check(reader, dataset)
    _warm.append((reader, dataset.size))


def warm_microseconds(*, batched: bool, seconds: float, seed: int) -> float:
    """Return the microseconds that `BATCH` records at random take."""
    reader, size = _warm[0]
    return 1e6 * BATCH / rate(_warm_steps(reader, size, batched=batched, seed=seed), seconds)


def _warm_steps(reader: Any, size: int, *, batched: bool, seed: int) -> Iterator[int]:
    rng = np.random.default_rng(seed)
    while True:
        for indices in in_batches(rng.integers(0, size, 64 * BATCH).tolist()):
            if batched:
                reader.batch(indices)
            else:
                for index in indices:
                    reader.one[index]
            yield len(indices)
