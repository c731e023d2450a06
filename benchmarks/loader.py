"""Samples {64 x 64 x 3 image, label} as tensors: by PyTorch's data loader, and by Ingot's own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from data import random_bytes
from measure import rate, settle_allocator
from peers import BATCH

SHAPE = (64, 64, 3)
_IMAGE_BYTES = 64 * 64 * 3


def _label(k: int) -> int:
    return k % 1000


def write_ingot(path: Path, size: int) -> None:
    """Write a data set of typed fields."""
    ingot = importlib.import_module("ingot")
    spec = {"image": "array(uint8,64,64,3)", "label": "int"}
    images = (np.frombuffer(random_bytes(k, _IMAGE_BYTES), np.uint8) for k in range(size))
    rows = ({"image": image.reshape(SHAPE), "label": _label(k)} for k, image in enumerate(images))
    with ingot.DatasetWriter(path, spec, sync=False, compression=None) as writer:
        writer.extend(rows)


def write_bagz(path: Path, size: int) -> None:
    """Write one record per sample: the pixels and eight bytes of label."""
    bagz = importlib.import_module("bagz")
    options = bagz.Writer.Options(compression=bagz.CompressionNone())
    path.mkdir(parents=True)
    with bagz.Writer(path / "samples.bagz", options) as writer:
        for k in range(size):
            writer.write(random_bytes(k, _IMAGE_BYTES) + _label(k).to_bytes(8, "little"))


def open_ingot(path: Path) -> Any:
    """Return the data set itself: PyTorch reads its rows a batch at a time."""
    return importlib.import_module("ingot").open(path)


class BagzSamples:
    """Bagz as a PyTorch user would wrap it, with one read per batch."""

    def __init__(self, path: Path) -> None:
        """Open the file with the setting that is fastest in memory."""
        bagz = importlib.import_module("bagz")
        options = bagz.Reader.Options(max_parallelism=1, compression=bagz.CompressionNone())
        self._reader = bagz.Reader(path / "samples.bagz", options)

    def __len__(self) -> int:
        return len(self._reader)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return _decoded(self._reader[index])

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        """Return the samples at `indices`, as PyTorch's loader asks for them."""
        return list(map(_decoded, self._reader.read_indices(indices)))


def _decoded(record: bytes) -> dict[str, Any]:
    image = np.frombuffer(record, np.uint8, _IMAGE_BYTES).reshape(SHAPE).copy()
    return {"image": image, "label": int.from_bytes(record[_IMAGE_BYTES:], "little")}


OWN = "ingot.Loader"
OF_TORCH = "ingot.torch.DataLoader"
WRITERS: dict[str, Callable[[Path, int], None]] = {
    OWN: write_ingot,
    OF_TORCH: write_ingot,
    "ingot": write_ingot,
    "bagz": write_bagz,
}
OPENERS: dict[str, Callable[[Path], Any]] = {
    OWN: open_ingot,
    OF_TORCH: open_ingot,
    "ingot": open_ingot,
    "bagz": BagzSamples,
}
_loaders: list[Any] = []


def open_loader(system: str, path: Path, num_workers: int) -> None:
    """Open the samples in a loader that shuffles, and check an epoch of it."""
    settle_allocator()
    torch = importlib.import_module("torch")
    importlib.import_module("torch.utils.data")
    samples = OPENERS[system](path)
    if system == OWN:
        own = importlib.import_module("ingot").Loader
        order = samples.shuffle(seed=0)
        loader = own(order, BATCH, workers=num_workers, to="torch")
    elif system == OF_TORCH:
        loader = importlib.import_module("ingot.torch").DataLoader(
            samples.shuffle(seed=0), BATCH, num_workers=num_workers,
            persistent_workers=num_workers > 0,
        )  # fmt: skip
    else:
        loader = torch.utils.data.DataLoader(
            samples, batch_size=BATCH, shuffle=True, num_workers=num_workers,
            persistent_workers=num_workers > 0,
        )  # fmt: skip
    count = 0
    for batch in loader:
        count += len(batch["label"])
    first = torch.from_numpy(np.array(samples[3]["image"])).numpy()
    if count != len(samples) or first.tobytes() != random_bytes(3, _IMAGE_BYTES):
        message = f"{system}: the samples read differ from those written"
        raise ValueError(message)
    _loaders.append(loader)


def epoch_rate(seed: int) -> float:
    """Return the samples a second of one whole epoch."""
    importlib.import_module("torch").manual_seed(seed)

    def steps() -> Iterator[int]:
        for batch in _loaders[0]:
            yield len(batch["label"])

    return rate(steps(), float("inf"))
