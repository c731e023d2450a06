"""Data sets of many files: how soon they open, and how fast one record of each is read."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import device
from data import half_random
from measure import settle_allocator

SHARDS = 64
SHARD_RECORDS = 8_192
_ROWS = 5
# A file of which more was read at random is brought into memory as a whole.
_PASS_SHARE = 1 / 100


def write_shards(directory: Path, num_records: int) -> None:
    """Write the files that `cold_rate` reads, unless they are there."""
    if (directory / "done").exists():
        return
    ingot = importlib.import_module("ingot")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for shard in range(SHARDS):
        first = shard * num_records
        with ingot.Writer(directory / f"{shard:03}.ingot", compression=None) as writer:
            writer.extend(map(half_random, range(first, first + num_records)))
    (directory / "done").touch()


def read_through(files: list[Path]) -> None:
    """Read all files: the host of a virtual machine has a cache of its own, which must not differ.

    Without this, the system that reads a place first waits for the host.
    """
    for file in files:
        file.read_bytes()


def cold_rate(
    directory: Path, num_records: int, access: str, seconds: float, seed: int
) -> tuple[float, float]:
    """Read one random record of each file per batch, none of which is in memory.

    Returns the records a second from the second batch on, and the seconds to the first,
    with the opening.
    """
    os.environ["INGOT_IO"] = access
    ingot = importlib.import_module("ingot")
    settle_allocator()
    files = sorted(directory.glob("*.ingot"))
    rng = np.random.default_rng(seed)
    firsts: list[float] = []
    count, elapsed = 0, 0.0
    while elapsed < seconds:
        device.evict(files)
        num_batches = 1 + max(1, round(num_records * _PASS_SHARE))
        rows = np.stack([rng.choice(num_records, num_batches, replace=False) for _ in files])
        batches = (rows + num_records * np.arange(len(files))[:, None]).T.tolist()
        start = time.perf_counter()
        with ingot.open(str(directory / "*.ingot")) as reader:
            found = reader[batches[0]]
            middle = time.perf_counter()
            for batch in batches[1:]:
                reader[batch]
            end = time.perf_counter()
        if found != [half_random(index) for index in batches[0]]:
            message = "the records read differ from those written"
            raise ValueError(message)
        firsts.append(middle - start)
        count += len(files) * (num_batches - 1)
        elapsed += end - middle
    return count / elapsed, min(firsts)


def write_links(directory: Path, num_shards: int) -> None:
    """Write a data set of many files, each of which is a link to the same one."""
    ingot = importlib.import_module("ingot")
    shutil.rmtree(directory, ignore_errors=True)
    with ingot.DatasetWriter(directory, {"a": "int", "b": "utf8"}, sync=False) as writer:
        writer.extend({"a": k, "b": f"row {k}"} for k in range(_ROWS))
    manifest = json.loads((directory / "dataset.json").read_text())
    (first,) = manifest["shards"]
    shards = [first]
    for k in range(1, num_shards):
        shards.append(first | {"name": f"{k:06}.ingot"})
        (directory / shards[-1]["name"]).hardlink_to(directory / first["name"])
    (directory / "dataset.json").write_text(json.dumps(manifest | {"shards": shards}))


@dataclass(frozen=True)
class Opening:
    """What it took to open a data set, and then to read 64 rows at random."""

    milliseconds: float
    num_files: int
    batch_milliseconds: float


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def opening(directory: Path, probe: Path, seed: int) -> Opening:
    """Open a data set in a process that has opened another one before, so that code is loaded."""
    ingot = importlib.import_module("ingot")
    with ingot.open(probe) as other:
        other[[0, 1]]
    before = _descriptors()
    start = time.perf_counter()
    ds = ingot.open(directory)
    middle = time.perf_counter()
    num_files = _descriptors() - before
    wanted = np.random.default_rng(seed).integers(0, len(ds), 64)
    began = time.perf_counter()
    batch = ds[wanted]
    end = time.perf_counter()
    if batch["b"] != [f"row {k % _ROWS}" for k in wanted.tolist()]:
        message = "the rows read differ from those written"
        raise ValueError(message)
    return Opening(1e3 * (middle - start), num_files, 1e3 * (end - began))
