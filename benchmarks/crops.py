"""Training crops of JPEG files, normalised to float32: by four loaders, over the same files."""

from __future__ import annotations

import functools
import importlib
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peers import BATCH
from pictures import label, picture

SIDE = 224
WORKERS = 2
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
_SCALE = (0.08, 1.0)
_RATIO = (3 / 4, 4 / 3)
_ATTEMPTS = 10

# Numbers that are subtracted from bytes, and that these are then multiplied by.
_SHIFT = np.array(MEAN, np.float32)[:, None, None] * 255
_FACTOR = 1 / (np.array(STD, np.float32)[:, None, None] * 255)

Epoch = Callable[[int], Iterator[Any]]
"""Given a seed, reads all pictures once, and yields batches of values."""

Box = tuple[int, int, int, int]
"""Top, left, height and width."""


@dataclass(frozen=True)
class Job:
    """What is done to which pictures."""

    name: str
    size: tuple[int, int]
    quality: int
    crop: str

    def picture(self, index: int) -> bytes:
        """Return the file of a picture."""
        return picture(index, self.size, self.quality)

    def box(self, rng: np.random.Generator) -> Box:
        """Return a random part: of the size of the result, or as torchvision chooses it."""
        height, width = self.size
        if self.crop == "random":
            top, left = rng.integers(height - SIDE + 1), rng.integers(width - SIDE + 1)
            return int(top), int(left), SIDE, SIDE
        for _ in range(_ATTEMPTS):
            target = height * width * rng.uniform(*_SCALE)
            aspect = math.exp(rng.uniform(*map(math.log, _RATIO)))
            wide, high = round(math.sqrt(target * aspect)), round(math.sqrt(target / aspect))
            if 0 < wide <= width and 0 < high <= height:
                top, left = rng.integers(height - high + 1), rng.integers(width - wide + 1)
                return int(top), int(left), high, wide
        return 0, 0, height, width


JOBS = {
    job.name: job
    for job in (
        Job("random", (256, 256), 80, "random"),
        Job("resized", (375, 500), 90, "resized"),
    )
}


def write_folder(path: Path, records: list[bytes]) -> None:
    """Write a file for each picture."""
    path.mkdir(parents=True)
    for index, record in enumerate(records):
        (path / f"{index:06}.jpg").write_bytes(record)


def write_ingot(path: Path, records: list[bytes]) -> None:
    """Write a data set of the same files."""
    ingot = importlib.import_module("ingot")
    with ingot.DatasetWriter(path, {"image": "jpg", "label": "int"}, sync=False) as writer:
        writer.extend({"image": one, "label": label(k)} for k, one in enumerate(records))


def _files(path: Path) -> list[str]:
    return sorted(str(file) for file in path.iterdir())


@functools.cache
def _torch() -> Any:
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    return torch


def _cropped(job: Job, file: str, rng: np.random.Generator) -> np.ndarray:
    """Return the bytes of a crop, colours first: simplejpeg decodes, PyTorch resizes.

    Mirroring and bringing the colours to the front are one copy, which is several times as fast
    as mirroring pixels of three bytes.
    """
    simplejpeg = importlib.import_module("simplejpeg")
    pixels = simplejpeg.decode_jpeg(Path(file).read_bytes())
    top, left, height, width = job.box(rng)
    part = pixels[top : top + height, left : left + width].transpose(2, 0, 1)
    if (height, width) != (SIDE, SIDE):
        torch = _torch()
        resized = torch.nn.functional.interpolate(
            torch.from_numpy(part)[None], (SIDE, SIDE), mode="bilinear", antialias=True
        )
        part = resized[0].numpy()
    return np.ascontiguousarray(part[:, :, ::-1] if rng.random() < 0.5 else part)


def _normalised(pixels: np.ndarray) -> np.ndarray:
    values = pixels.astype(np.float32)
    values -= _SHIFT
    values *= _FACTOR
    return values


class Crops:
    """Crops as a PyTorch user would make them."""

    def __init__(self, job: Job, path: Path) -> None:
        """List the files."""
        self._job = job
        self._files = _files(path)
        self._rng: tuple[int, np.random.Generator] = (-1, np.random.default_rng())

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> np.ndarray:
        if self._rng[0] != os.getpid():
            self._rng = (os.getpid(), np.random.default_rng())
        return _normalised(_cropped(self._job, self._files[index], self._rng[1]))


def open_torch(job: Job, path: Path, num_workers: int) -> Epoch:
    """Read with PyTorch's loader."""
    torch = _torch()
    data = importlib.import_module("torch.utils.data")
    options = {"multiprocessing_context": "fork", "persistent_workers": True}
    loader = data.DataLoader(
        Crops(job, path), batch_size=BATCH, shuffle=True, num_workers=num_workers,
        **(options if num_workers else {}),
    )  # fmt: skip

    def epoch(seed: int) -> Iterator[Any]:
        torch.manual_seed(seed)
        return iter(loader)

    return epoch


def open_grain(job: Job, path: Path) -> Epoch:
    """Read with Grain's threads: its processes start anew in each epoch, which takes longer."""
    grain = importlib.import_module("grain")
    importlib.import_module("absl.flags").FLAGS.mark_as_parsed()
    _torch()

    def crop(file: str, rng: np.random.Generator) -> np.ndarray:
        return _normalised(_cropped(job, file, rng))

    def epoch(seed: int) -> Iterator[Any]:
        files = grain.MapDataset.source(_files(path)).seed(seed).shuffle()
        threads = grain.ReadOptions(num_threads=WORKERS, prefetch_buffer_size=2 * BATCH)
        return iter(files.random_map(crop).to_iter_dataset(threads).batch(BATCH))

    return epoch


def _spdl_epochs(
    files: list[str], load: Callable[[str], Any], join: Callable[[list[Any]], Any]
) -> Epoch:
    spdl = importlib.import_module("spdl.pipeline")

    def epoch(seed: int) -> Iterator[Any]:
        order = np.random.default_rng(seed).permutation(len(files)).tolist()
        builder = spdl.PipelineBuilder().add_source([files[k] for k in order])
        builder.pipe(load, concurrency=WORKERS).aggregate(BATCH).pipe(join).add_sink(4)
        pipeline = builder.build(num_threads=WORKERS)
        with pipeline.auto_stop():
            yield from pipeline.get_iterator()

    return epoch


def open_spdl(job: Job, path: Path) -> Epoch:
    """Read with SPDL, whose FFmpeg decodes, crops, resizes and mirrors, and PyTorch normalises."""
    io = importlib.import_module("spdl.io")
    torch = _torch()
    rng = np.random.default_rng()
    shift, factor = torch.from_numpy(_SHIFT), torch.from_numpy(_FACTOR)

    def load(file: str) -> Any:
        top, left, height, width = job.box(rng)
        filters = [f"crop={width}:{height}:{left}:{top}:exact=1"]
        if (height, width) != (SIDE, SIDE):
            filters.append(f"scale={SIDE}:{SIDE}:flags=bilinear")
        if rng.random() < 0.5:
            filters.append("hflip")
        chain = ",".join([*filters, "format=pix_fmts=rgb24"])
        return io.decode_packets(io.demux_image(file), filter_desc=chain)

    def join(frames: list[Any]) -> Any:
        pixels = torch.from_numpy(io.to_numpy(io.convert_frames(frames))).permute(0, 3, 1, 2)
        return pixels.contiguous().float().sub_(shift).mul_(factor)

    return _spdl_epochs(_files(path), load, join)


def open_spdl_simplejpeg(job: Job, path: Path) -> Epoch:
    """Read with SPDL's pipeline, and crop as with PyTorch's loader."""
    _torch()
    rng = np.random.default_rng()
    load = functools.partial(_cropped, job)
    return _spdl_epochs(_files(path), lambda file: _normalised(load(file, rng)), np.stack)


def open_ingot(job: Job, path: Path) -> Epoch:
    """Read with Ingot's loader, which does the same in the engine."""
    ingot = importlib.import_module("ingot")
    crops = ingot.Pictures("image", SIDE, crop=job.crop, flip=0.5, mean=MEAN, std=STD, layout="chw")
    order = ingot.open(path).shuffle(seed=0).map(crops)
    loader = ingot.Loader(order, BATCH, workers=WORKERS)
    return lambda _: (batch["image"] for batch in loader)


def missing() -> dict[str, str]:
    """Return which systems cannot be measured here, and why."""
    try:
        importlib.import_module("spdl.io").demux_image(picture(0))
    except RuntimeError:
        return {"spdl": "it needs the shared libraries of FFmpeg 4 to 9"}
    return {}


WAYS: dict[str, Callable[[Job, Path], Epoch]] = {
    "ingot": open_ingot,
    "torch, 2 workers": functools.partial(open_torch, num_workers=WORKERS),
    "torch, no workers": functools.partial(open_torch, num_workers=0),
    "spdl": open_spdl,
    "spdl, simplejpeg": open_spdl_simplejpeg,
    "grain, 2 threads": open_grain,
}
