"""Pictures with labels in a folder, in tars, in Arrow and in Ingot, read as trainings do."""

from __future__ import annotations

import collections
import functools
import importlib
import io
import itertools
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peers import BATCH

SIDE = 256
CLASSES = 1_000
BUFFER = 1_000
_TAR_PICTURES = 1_000
_CONTRAST = 45
_COLOUR = 12
_QUALITY = 80
_CHECKED_BATCHES = 2

# Hugging Face's iterable data set gives PyTorch pixels that are Pillow's own.
warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)

Epoch = Callable[[int], Iterator[tuple[Any, Any]]]
"""Given a seed, reads all pictures once, and yields batches of pictures and labels."""


@dataclass(frozen=True)
class Mode:
    """What an epoch reads: pixels or stored bytes, with so many workers of PyTorch's loader."""

    decoded: bool
    num_workers: int


@dataclass(frozen=True)
class Way:
    """How one system reads.

    Attributes:
        system: Its name.
        store: The one of `STORES` that it reads.
        open: Opens it, and returns what reads an epoch.
        has_workers: Whether it goes through PyTorch's loader.
        note: What the name leaves open.
    """

    system: str
    store: str
    open: Callable[[Path, Mode], Epoch]
    has_workers: bool = True
    note: str = ""


@functools.cache
def _falloff(height: int, width: int) -> np.ndarray:
    """Return what the frequencies of a picture are divided by, as in photographs."""
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    frequency[0, 0] = 1
    return frequency**1.6


def picture(index: int, size: tuple[int, int] = (SIDE, SIDE), quality: int = _QUALITY) -> bytes:
    """Return a JPEG file, by default of about 11 KB, with detail at every scale."""
    image = importlib.import_module("PIL.Image")
    noise = np.random.default_rng(index).standard_normal((3, *size), np.float32)
    planes = np.fft.irfft2(np.fft.rfft2(noise) / _falloff(*size), s=size, axes=(1, 2))
    planes /= planes.std(axis=(1, 2), keepdims=True)
    grey = 128 + _CONTRAST * planes[0]
    pixels = np.stack([grey + _COLOUR * planes[1], grey, grey + _COLOUR * planes[2]], axis=-1)
    stream = io.BytesIO()
    image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(stream, "JPEG", quality=quality)
    return stream.getvalue()


def label(index: int) -> int:
    """Return the class of a picture."""
    return index % CLASSES


def pixels_of(data: bytes | Path) -> np.ndarray:
    """Return what Pillow finds in a file."""
    image = importlib.import_module("PIL.Image")
    stream = io.BytesIO(data) if isinstance(data, bytes) else data
    with image.open(stream) as found:
        return np.array(found.convert("RGB"))  # Writable, as PyTorch wants it.


def _write_folder(path: Path, records: list[bytes]) -> None:
    for index, record in enumerate(records):
        folder = path / f"{label(index):04}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{index:06}.jpg").write_bytes(record)


def _write_tars(path: Path, records: list[bytes]) -> None:
    webdataset = importlib.import_module("webdataset")
    path.mkdir(parents=True)
    pattern = str(path / "%04d.tar")
    with webdataset.ShardWriter(pattern, maxcount=_TAR_PICTURES, verbose=0) as writer:
        for index, record in enumerate(records):
            writer.write({"__key__": f"{index:06}", "jpg": record, "cls": label(index)})


def _hf() -> Any:
    datasets = importlib.import_module("datasets")
    datasets.disable_progress_bars()
    return datasets


def _write_arrow(path: Path, records: list[bytes]) -> None:
    datasets = _hf()
    columns = {
        "image": [{"bytes": record, "path": None} for record in records],
        "label": [label(index) for index in range(len(records))],
    }
    features = datasets.Features(image=datasets.Image(), label=datasets.Value("int64"))
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(path)


def _write_ingot(path: Path, records: list[bytes]) -> None:
    ingot = importlib.import_module("ingot")
    spec = {"image": "jpg", "label": "int"}
    with ingot.DatasetWriter(path, spec, sync=False) as writer:
        writer.extend({"image": one, "label": label(k)} for k, one in enumerate(records))


STORES: dict[str, Callable[[Path, list[bytes]], None]] = {
    "folder": _write_folder,
    "webdataset": _write_tars,
    "hf datasets": _write_arrow,
    "ingot": _write_ingot,
}
"""What writes the pictures at a path; none of them waits for the device."""


def _torch_data() -> Any:
    return importlib.import_module("torch.utils.data")


def _itself(batch: Any) -> Any:
    return batch


def _fields(batch: Any) -> tuple[Any, Any]:
    return batch["image"], batch["label"]


def _columns(rows: list[Any]) -> tuple[Any, Any]:
    return [row["image"] for row in rows], [row["label"] for row in rows]


def _pairs(batch: Any) -> tuple[Any, Any]:
    images, labels = batch
    return images, labels


def _transposed(rows: list[Any]) -> tuple[Any, Any]:
    images, labels = zip(*rows, strict=True)
    return images, labels


def _loaded(
    data: Any, mode: Mode, split: Callable[[Any], tuple[Any, Any]], **options: Any
) -> Epoch:
    """Return epochs of PyTorch's loader, each with workers of its own.

    They start by fork, as in any program on Linux whose own process was not spawned. PyTorch
    stacks on one thread, as it does in workers: on busy cores its threads wait for one another.
    """
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    if mode.num_workers:
        options["multiprocessing_context"] = "fork"
    loader = _torch_data().DataLoader(data, num_workers=mode.num_workers, **options)

    def epoch(seed: int) -> Iterator[tuple[Any, Any]]:
        torch.manual_seed(seed)
        return map(split, loader)

    return epoch


def _sampled(
    data: Any, mode: Mode, split: Callable[[Any], tuple[Any, Any]], **options: Any
) -> Epoch:
    """Return epochs that ask `data` for a list of indices at a time."""
    samplers = _torch_data()
    sampler = samplers.BatchSampler(samplers.RandomSampler(data), BATCH, drop_last=False)
    return _loaded(data, mode, split, sampler=sampler, batch_size=None, **options)


class _Folder:
    """The pictures of a folder, whose directories are the classes."""

    def __init__(self, path: Path, *, decoded: bool) -> None:
        classes = sorted(entry for entry in path.iterdir() if entry.is_dir())
        self._files = [
            (file, number)
            for number, folder in enumerate(classes)
            for file in sorted(folder.iterdir())
        ]
        self._decoded = decoded

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        file, number = self._files[index]
        return (pixels_of(file) if self._decoded else file.read_bytes()), number


def _open_folder(path: Path, mode: Mode) -> Epoch:
    data = _Folder(path, decoded=mode.decoded)
    if mode.decoded:
        return _loaded(data, mode, _pairs, batch_size=BATCH, shuffle=True)
    return _loaded(data, mode, _transposed, batch_size=BATCH, shuffle=True, collate_fn=list)


def _open_tars(path: Path, mode: Mode) -> Epoch:
    webdataset = importlib.import_module("webdataset")
    tars = sorted(map(str, path.glob("*.tar")))
    found = webdataset.WebDataset(tars, shardshuffle=len(tars)).shuffle(BUFFER)
    if mode.decoded:
        data = found.decode("rgb8").to_tuple("jpg", "cls").batched(BATCH)
        return _loaded(data, mode, _pairs, batch_size=None)
    data = found.decode().to_tuple("jpg", "cls").batched(BATCH, collation_fn=list)
    return _loaded(data, mode, _transposed, batch_size=None, collate_fn=_itself)


def _arrow(path: Path, mode: Mode) -> Any:
    datasets = _hf()
    data = datasets.load_from_disk(path)
    if mode.decoded:
        return data.with_format("numpy")
    return data.cast_column("image", datasets.Image(decode=False))


def _bytes_of(rows: list[Any]) -> tuple[Any, Any]:
    return [row["image"]["bytes"] for row in rows], [row["label"] for row in rows]


def _bytes_of_columns(batch: Any) -> tuple[Any, Any]:
    return [image["bytes"] for image in batch["image"]], batch["label"]


def _open_arrow(path: Path, mode: Mode) -> Epoch:
    data = _arrow(path, mode)
    if mode.decoded:
        return _loaded(data, mode, _fields, batch_size=BATCH, shuffle=True)
    return _loaded(data, mode, _bytes_of, batch_size=BATCH, shuffle=True, collate_fn=list)


def _open_arrow_sampler(path: Path, mode: Mode) -> Epoch:
    rows = _arrow(path, mode)
    if mode.decoded:
        return _sampled(rows, mode, _fields)
    return _sampled(rows, mode, _bytes_of_columns, collate_fn=_itself)


def _open_arrow_stream(path: Path, mode: Mode) -> Epoch:
    rows = _arrow(path, mode)
    num_shards = -(-len(rows) // _TAR_PICTURES)
    data = rows.to_iterable_dataset(num_shards=num_shards).shuffle(seed=0, buffer_size=BUFFER)
    if mode.decoded:
        return _loaded(data, mode, _fields, batch_size=BATCH)
    return _loaded(data, mode, _bytes_of, batch_size=BATCH, collate_fn=list)


def _ingot(path: Path, mode: Mode) -> Any:
    ds = importlib.import_module("ingot").open(path)
    return ds if mode.decoded else ds.stored()


def _open_ingot(path: Path, mode: Mode) -> Epoch:
    ds = _ingot(path, mode)
    if mode.decoded:
        return _loaded(ds, mode, _fields, batch_size=BATCH, shuffle=True)
    return _loaded(ds, mode, _columns, batch_size=BATCH, shuffle=True, collate_fn=list)


def _open_ingot_sampler(path: Path, mode: Mode) -> Epoch:
    options = {} if mode.decoded else {"collate_fn": _itself}
    return _sampled(_ingot(path, mode), mode, _fields, **options)


def _open_ingot_plain(path: Path, mode: Mode) -> Epoch:
    ds = _ingot(path, mode)

    def epoch(seed: int) -> Iterator[tuple[Any, Any]]:
        order = np.random.default_rng(seed).permutation(len(ds))
        for start in range(0, len(order), BATCH):
            yield _fields(ds[order[start : start + BATCH]])

    return epoch


_BUFFERED = f"tars in random order, then a shuffle buffer of {BUFFER:,}"
_SAMPLED = "a BatchSampler as the sampler"

WAYS = {
    way.system: way
    for way in (
        Way("folder", "folder", _open_folder),
        Way("webdataset", "webdataset", _open_tars, note=_BUFFERED),
        Way("hf datasets", "hf datasets", _open_arrow),
        Way("hf sampler", "hf datasets", _open_arrow_sampler, note=_SAMPLED),
        Way(
            "hf iterable",
            "hf datasets",
            _open_arrow_stream,
            note=_BUFFERED.replace("tars", "shards"),
        ),
        Way("ingot", "ingot", _open_ingot, note="DataLoader(ds, batch_size=64, shuffle=True)"),
        Way("ingot sampler", "ingot", _open_ingot_sampler, note=_SAMPLED),
        Way("ingot ds[...]", "ingot", _open_ingot_plain, has_workers=False, note="no loader"),
    )
}


def check_stored(epoch: Epoch, records: list[bytes]) -> None:
    """Compare all that is read with what was written, whatever the order."""
    found = itertools.chain.from_iterable(zip(*batch, strict=True) for batch in epoch(0))
    expected = collections.Counter((one, label(k)) for k, one in enumerate(records))
    if collections.Counter((bytes(one), int(number)) for one, number in found) != expected:
        message = "the pictures read differ from those written"
        raise ValueError(message)


def check_decoded(epoch: Epoch, records: list[bytes]) -> None:
    """Compare some pictures with what Pillow decodes of those with the same label."""
    for images, labels in itertools.islice(epoch(0), _CHECKED_BATCHES):
        for image, number in zip(images, labels, strict=True):
            candidates = map(pixels_of, records[int(number) :: CLASSES])
            if not _is_among(np.asarray(image), candidates):
                message = f"a picture of class {number} differs from those written"
                raise ValueError(message)


def _is_among(image: np.ndarray, candidates: Iterable[np.ndarray]) -> bool:
    """Tell whether a picture, its colours first or last, is one of `candidates`, roughly."""
    pixels = image.transpose(1, 2, 0) if image.shape[0] == 3 else image
    if pixels.dtype != np.uint8 or pixels.shape != (SIDE, SIDE, 3):
        return False
    return any(np.abs(pixels.astype(int) - one).mean() < 1 for one in candidates)


def first_batch(system: str, path: str) -> None:
    """Read one decoded batch, and say so."""
    epoch = WAYS[system].open(Path(path), Mode(decoded=True, num_workers=0))
    _, labels = next(epoch(0))
    print(len(labels), flush=True)


def files(path: Path) -> list[Path]:
    """Return all files at `path`."""
    return [file for file in path.rglob("*") if file.is_file()]


def remove(path: Path) -> None:
    """Delete what is at `path`, if anything is."""
    shutil.rmtree(path, ignore_errors=True)
