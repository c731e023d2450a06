"""Typed data sets as trainings use them, stored and read by several systems."""

from __future__ import annotations

import functools
import importlib
import io
import itertools
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data import random_bytes
from peers import BATCH

OLD_GRANULAR = Path(__file__).resolve().parent.parent / ".bench" / "granular-0.21"
THREADS = 2
FRAMES = 500
RANGE = 10
_RANGES = 1_000
SHARDS = 50
_PICTURES = 256
_FRAME = (144, 192)
_FILMED = 400


@dataclass(frozen=True)
class Way:
    """How one system does a job.

    Attributes:
        system: Its name.
        write: Stores `size` datapoints at a path.
        open: Opens them, and returns what does a step of the job, given a random generator,
            and tells how many units it did.
    """

    system: str
    write: Callable[[Path, int], None]
    open: Callable[[Path], Callable[[np.random.Generator], int]]


def _in_order(size: int, make: Callable[[int], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return map(make, range(size))


def _sample(k: int) -> dict[str, Any]:
    image = np.frombuffer(random_bytes(k, 64 * 64 * 3), np.uint8).reshape(64, 64, 3)
    return {"image": image, "label": k % 1000}


def _check(found: bool, what: str) -> None:  # noqa: FBT001
    if not found:
        message = f"{what}: what was read differs from what was written"
        raise ValueError(message)


def _write_ingot(
    path: Path, spec: dict[str, str], rows: Iterator[dict[str, Any]], **options: Any
) -> None:
    ingot = importlib.import_module("ingot")
    with ingot.DatasetWriter(path, spec, sync=False, compression=None, **options) as writer:
        writer.extend(rows)


def _ingot_samples(path: Path, size: int, kind: str) -> None:
    _write_ingot(path, {"image": kind, "label": "int"}, _in_order(size, _sample))


def _open_ingot_samples(path: Path) -> Callable[[np.random.Generator], int]:
    ds = importlib.import_module("ingot").open(path)
    batch = ds[[3, 1]]
    _check(np.array_equal(batch["image"][0], _sample(3)["image"]), "ingot")

    def step(rng: np.random.Generator) -> int:
        batch = ds[rng.integers(0, len(ds), BATCH)]
        return len(batch["image"])

    return step


def _granular_samples(path: Path, size: int) -> None:
    granular = importlib.import_module("granular")
    spec = {"image": "array", "label": "int"}
    with granular.DatasetWriter(path, spec, granular.encoders) as writer:
        for k in range(size):
            row = _sample(k)
            row["label"] %= 100  # Its integers from 128 to 255 fail.
            writer.append(row, flush=k % 1000 == 999)


def _open_granular_samples(path: Path) -> Callable[[np.random.Generator], int]:
    granular = importlib.import_module("granular")
    reader = granular.DatasetReader(path, granular.decoders)
    _check(np.array_equal(reader[3]["image"], _sample(3)["image"]), "granular")

    def step(rng: np.random.Generator) -> int:
        rows = [reader[k] for k in rng.integers(0, len(reader), BATCH).tolist()]
        images = np.stack([row["image"] for row in rows])
        np.array([row["label"] for row in rows])
        return len(images)

    return step


def _frames(k: int) -> dict[str, Any]:
    """Return a film whose frames are JPEG files of about 8 KB."""
    return {"frames": [picture((k * 7 + j) % _FILMED, *_FRAME) for j in range(FRAMES)]}


def _ingot_frames(path: Path, size: int, kind: str) -> None:
    _write_ingot(path, {"frames": kind}, _in_order(size, _frames))


def _ranges(size: int) -> list[tuple[int, range]]:
    """Return 1,000 ranges at random."""
    rng = np.random.default_rng(0)
    films = rng.integers(0, size, _RANGES).tolist()
    starts = rng.integers(0, FRAMES - RANGE, _RANGES).tolist()
    return [(k, range(j, j + RANGE)) for k, j in zip(films, starts, strict=True)]


def _open_frames(reader: Any, system: str) -> Callable[[np.random.Generator], int]:
    found = reader[1, {"frames": range(3, 5)}]["frames"]
    for one, expected in zip(found, _frames(1)["frames"][3:5], strict=True):
        if isinstance(one, bytes):
            _check(one == expected, system)
        else:
            _check(_is_like(one, _by_pillow(expected)), system)

    ranges = itertools.cycle(_ranges(len(reader)))

    def step(_: np.random.Generator) -> int:
        for k, wanted in itertools.islice(ranges, BATCH):
            reader[k, {"frames": wanted}]
        return BATCH

    return step


def _open_ingot_frames(path: Path) -> Callable[[np.random.Generator], int]:
    return _open_frames(importlib.import_module("ingot").open(path), "ingot")


def _old_granular() -> Any:
    if str(OLD_GRANULAR) not in sys.path:
        sys.path.insert(0, str(OLD_GRANULAR))
    return importlib.import_module("granular")


def _granular_frames(path: Path, size: int, kind: str) -> None:
    granular = _old_granular()
    encoders = {**granular.encoders, "jpg": bytes}  # The files are there already.
    with granular.DatasetWriter(path, {"frames": kind}, encoders) as writer:
        for k in range(size):
            writer.append(_frames(k))


def _open_granular_frames(path: Path) -> Callable[[np.random.Generator], int]:
    granular = _old_granular()
    return _open_frames(granular.DatasetReader(path, granular.decoders), "granular 0.21")


def _labels(k: int) -> dict[str, Any]:
    return {"label": k % 1000, "text": f"row {k}"}


def _ingot_labels(path: Path, size: int) -> None:
    spec = {"label": "int", "text": "utf8"}
    _write_ingot(path, spec, _in_order(size, _labels), shard_rows=size // SHARDS)


def _open_column(path: Path) -> Callable[[np.random.Generator], int]:
    ds = importlib.import_module("ingot").open(path)

    def step(_: np.random.Generator) -> int:
        labels = ds.column("label")
        _check(bool(labels[-1] == (len(ds) - 1) % 1000), "ingot")
        return len(labels)

    return step


def _open_rows(path: Path) -> Callable[[np.random.Generator], int]:
    ds = importlib.import_module("ingot").open(path)

    def step(rng: np.random.Generator) -> int:
        start = int(rng.integers(0, len(ds) - 1000))
        return len([ds[k]["label"] for k in range(start, start + 1000)])

    return step


def _open_iteration(path: Path) -> Callable[[np.random.Generator], int]:
    ds = importlib.import_module("ingot").open(path)
    _check(next(iter(ds)) == _labels(0), "ingot")
    rows = iter(itertools.chain.from_iterable(itertools.repeat(ds)))

    def step(_: np.random.Generator) -> int:
        return sum(1 for _ in itertools.islice(rows, 1000))

    return step


@functools.cache
def picture(k: int, height: int = 375, width: int = 500) -> bytes:
    """Return a JPEG file: gradients, shapes and some noise."""
    image = importlib.import_module("PIL.Image")
    rng = np.random.default_rng(k)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    pixels = np.stack([x / 2 + rng.random() * 99, y / 2, (x + y) / 4], axis=-1)
    for _ in range(12):
        cx, cy = rng.integers(0, width), rng.integers(0, height)
        radius = rng.integers(10, 90)
        pixels[(x - cx) ** 2 + (y - cy) ** 2 < radius**2] = rng.integers(0, 256, 3)
    pixels += rng.normal(0, 6, pixels.shape)
    stream = io.BytesIO()
    image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(stream, "JPEG", quality=90)
    return stream.getvalue()


def _pictures(k: int) -> dict[str, Any]:
    return {"image": picture(k % _PICTURES)}


def _ingot_pictures(path: Path, size: int) -> None:
    _write_ingot(path, {"image": "jpg"}, _in_order(size, _pictures))


def _open_ingot_pictures(path: Path) -> Callable[[np.random.Generator], int]:
    ds = importlib.import_module("ingot").open(path)
    _check(_is_like(ds[[5, 2]]["image"][0], _by_pillow(picture(5))), "ingot")

    def step(rng: np.random.Generator) -> int:
        return len(ds[rng.integers(0, len(ds), BATCH)]["image"])

    return step


def _is_like(found: Any, expected: Any) -> bool:
    return bool(np.abs(found.astype(int) - expected).mean() < 1)


def _by_pillow(data: bytes) -> Any:
    image = importlib.import_module("PIL.Image")
    return np.asarray(image.open(io.BytesIO(data)))


def _by_simplejpeg(data: bytes) -> Any:
    return importlib.import_module("simplejpeg").decode_jpeg(data)


def _nothing(path: Path, size: int) -> None:
    """Store nothing: the files are in memory already."""


def _open_in_threads(
    decode: Callable[[bytes], Any], _: Path
) -> Callable[[np.random.Generator], int]:
    pool = ThreadPoolExecutor(THREADS)
    files = [picture(k) for k in range(_PICTURES)]

    def step(rng: np.random.Generator) -> int:
        chosen = [files[k] for k in rng.integers(0, _PICTURES, BATCH).tolist()]
        out = np.empty((BATCH, 375, 500, 3), np.uint8)

        def share(first: int) -> None:
            for k in range(first, BATCH, THREADS):
                out[k] = decode(chosen[k])

        list(pool.map(share, range(THREADS)))
        return BATCH

    return step


def _film_ways(kind: str) -> tuple[Way, ...]:
    return (
        Way("ingot", functools.partial(_ingot_frames, kind=kind), _open_ingot_frames),
        Way("granular 0.21", functools.partial(_granular_frames, kind=kind), _open_granular_frames),
    )


WAYS: dict[str, tuple[Way, ...]] = {
    "samples": (
        Way(
            "ingot",
            functools.partial(_ingot_samples, kind="array(uint8,64,64,3)"),
            _open_ingot_samples,
        ),
        Way("ingot array", functools.partial(_ingot_samples, kind="array"), _open_ingot_samples),
        Way("granular", _granular_samples, _open_granular_samples),
    ),
    "ranges": _film_ways("bytes[]"),
    "ranges-decoded": _film_ways("jpg[]"),
    "column": (
        Way("ingot", _ingot_labels, _open_column),
        Way("every row", _nothing, _open_rows),
    ),
    "iteration": (
        Way("ingot", _ingot_labels, _open_iteration),
        Way("every row", _nothing, _open_rows),
    ),
    "pictures": (
        Way("ingot", _ingot_pictures, _open_ingot_pictures),
        Way("pillow", _nothing, functools.partial(_open_in_threads, _by_pillow)),
        Way("simplejpeg", _nothing, functools.partial(_open_in_threads, _by_simplejpeg)),
    ),
}


def remove(path: Path) -> None:
    """Delete what a system has stored."""
    shutil.rmtree(path, ignore_errors=True)


def prepared(path: Path) -> bool:
    """Read all files into the page cache; tell whether there are any."""
    files = [file for file in path.rglob("*") if file.is_file()]
    for file in files:
        file.read_bytes()
    return bool(files)


def steps(step: Callable[[np.random.Generator], int], seed: int) -> Iterator[int]:
    """Do a job over and over."""
    rng = np.random.default_rng(seed)
    return (step(rng) for _ in itertools.count())
