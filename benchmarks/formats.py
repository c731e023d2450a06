"""Pictures with labels and captions in TFRecord, tars, MDS and LitData, and who reads them how."""

from __future__ import annotations

import importlib
import os
import shutil
import struct
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data import sentence
from peers import BATCH
from pictures import BUFFER, label

STREAMING = Path(__file__).resolve().parent.parent / ".bench" / "streaming"
_SHARD_PICTURES = 1_000
COLUMNS = {"image": "bytes", "label": "int", "caption": "str"}

# A few pictures to warm up with do not fill the shuffle buffer of `tfrecord`.
warnings.filterwarnings("ignore", "Number of elements in the iterator is less", UserWarning)

Sample = tuple[bytes, int, str]
One = Callable[[int], Sample]


def streaming() -> Any:
    """Return the package Streaming, which is installed beside the environment."""
    if str(STREAMING) not in sys.path:
        sys.path.append(str(STREAMING))
    return importlib.import_module("streaming")


def samples(records: Iterable[bytes]) -> Iterator[Sample]:
    """Yield pictures with what belongs to them."""
    return ((record, label(k), sentence(k)) for k, record in enumerate(records))


def _write_tfrecord(path: Path, records: list[bytes]) -> None:
    tfrecord = importlib.import_module("tfrecord")
    index = importlib.import_module("tfrecord.tools.tfrecord2idx")
    for shard, start in enumerate(range(0, len(records), _SHARD_PICTURES)):
        file = path / f"{shard:04}.tfrecord"
        writer = tfrecord.TFRecordWriter(str(file))
        for k in range(start, min(start + _SHARD_PICTURES, len(records))):
            writer.write(
                {
                    "image": (records[k], "byte"),
                    "label": (label(k), "int"),
                    "caption": (sentence(k).encode(), "byte"),
                }
            )
        writer.close()
        index.create_index(str(file), str(file.with_suffix(".index")))


def _write_tars(path: Path, records: list[bytes]) -> None:
    webdataset = importlib.import_module("webdataset")
    pattern = str(path / "%04d.tar")
    with webdataset.ShardWriter(pattern, maxcount=_SHARD_PICTURES, verbose=0) as writer:
        for k, (image, number, caption) in enumerate(samples(records)):
            writer.write({"__key__": f"{k:06}", "jpg": image, "cls": number, "txt": caption})


def _write_mds(path: Path, records: list[bytes]) -> None:
    with streaming().MDSWriter(out=str(path), columns=COLUMNS, exist_ok=True) as writer:
        for sample in samples(records):
            writer.write(dict(zip(COLUMNS, sample, strict=True)))


def _write_litdata(path: Path, records: list[bytes]) -> None:
    """Write with labels as arrays, without which LitData would store Arrow."""
    writer_of = importlib.import_module("litdata.streaming.writer").BinaryWriter
    writer = writer_of(str(path), chunk_bytes="64MB")
    for k, (image, number, caption) in enumerate(samples(records)):
        writer[k] = {"image": image, "label": np.array([number]), "caption": caption}
    writer.done()
    writer.merge()


class _IndexedRecords:
    """TFRecord files as a list, by the index and the parser of the package `tfrecord`.

    The package itself reads front to end only; this is what its index allows.
    """

    def __init__(self, path: Path) -> None:
        self._reader = importlib.import_module("tfrecord.reader")
        self._example = importlib.import_module("tfrecord.example_pb2").Example
        self._places: list[tuple[Any, int]] = []
        for file in sorted(path.glob("*.tfrecord")):
            opened = file.open("rb")
            offsets = np.loadtxt(file.with_suffix(".index"), dtype=np.int64)[:, 0]
            self._places += [(opened, offset) for offset in offsets.tolist()]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Sample:
        file, offset = self._places[index]
        file.seek(offset)
        (length,) = struct.unpack("<Q", file.read(12)[:8])
        example = self._example.FromString(file.read(length))
        return _of_example(self._reader.extract_feature_dict(example.features, None, {}))


def _of_example(found: dict[str, Any]) -> Sample:
    return found["image"], int(found["label"][0]), found["caption"].decode()


def _of_columns(found: dict[str, Any]) -> Sample:
    return found["image"], found["label"], found["caption"]


def _of_chunk(found: dict[str, Any]) -> Sample:
    return found["image"], int(found["label"][0]), found["caption"]


def _one_mds(path: Path) -> One:
    data = streaming().LocalDataset(str(path))
    return lambda index: _of_columns(data[index])


def _one_litdata(path: Path) -> One:
    data = importlib.import_module("litdata").StreamingDataset(str(path))
    return lambda index: _of_chunk(data[index])


def _epoch_tfrecord(path: Path, seed: int) -> Iterator[Sample]:
    np.random.seed(seed)  # noqa: NPY002 -- the package draws from here
    data = importlib.import_module("tfrecord.torch.dataset").MultiTFRecordDataset(
        str(path / "{}.tfrecord"),
        None,
        {file.stem: 1.0 for file in path.glob("*.tfrecord")},
        shuffle_queue_size=BUFFER,
        infinite=False,
    )
    return map(_of_example, data)


def _epoch_tars(path: Path, seed: int) -> Iterator[Sample]:
    webdataset = importlib.import_module("webdataset")
    tars = sorted(map(str, path.glob("*.tar")))
    data = webdataset.WebDataset(tars, shardshuffle=len(tars), seed=seed).shuffle(BUFFER)
    return ((one["jpg"], int(one["cls"]), one["txt"].decode()) for one in data)


def _epoch_mds(path: Path, seed: int) -> Iterator[Sample]:
    data = streaming().StreamingDataset(
        local=str(path), shuffle=True, shuffle_seed=seed, batch_size=BATCH, num_canonical_nodes=1
    )
    return map(_of_columns, data)


def _epoch_litdata(path: Path, seed: int) -> Iterator[Sample]:
    data = importlib.import_module("litdata").StreamingDataset(str(path), shuffle=True, seed=seed)
    return map(_of_chunk, data)


@dataclass(frozen=True)
class Format:
    """A format of others.

    Attributes:
        title: Its name.
        package: What reads it beside Ingot.
        write: Writes pictures into a directory.
        spec: What Ingot reads, in the order picture, label, caption.
        epoch: Reads all samples in an order that a seed shuffles, as the package does.
        one: Opens the samples as the package reads one at random; None if it cannot.
        note: What the package does in `one`.
    """

    title: str
    package: str
    write: Callable[[Path, list[bytes]], None]
    spec: dict[str, str]
    epoch: Callable[[Path, int], Iterator[Sample]]
    one: Callable[[Path], One] | None = None
    note: str = ""


_SPEC = {"image": "bytes", "label": "int", "caption": "utf8"}
FORMATS = {
    "tfrecord": Format(
        "TFRecord",
        "tfrecord",
        _write_tfrecord,
        _SPEC,
        _epoch_tfrecord,
        lambda path: _IndexedRecords(path).__getitem__,
        "a loop of ours over its index and its parser",
    ),
    "tar": Format(
        "tar",
        "webdataset",
        _write_tars,
        {"jpg": "bytes", "cls": "int", "txt": "utf8"},
        _epoch_tars,
        note="it cannot read at random",
    ),
    "mds": Format("MDS", "streaming", _write_mds, _SPEC, _epoch_mds, _one_mds, "LocalDataset"),
    "litdata": Format(
        "LitData",
        "litdata",
        _write_litdata,
        {"image": "bytes", "label": "array(int64)[]", "caption": "utf8"},
        _epoch_litdata,
        _one_litdata,
        "StreamingDataset",
    ),
}


def write(key: str, path: Path, records: list[bytes]) -> None:
    """Write pictures in a format, in place of what is there."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    FORMATS[key].write(path, records)


def open_ingot(key: str, path: Path) -> Any:
    """Return a data set of the stored bytes, the labels and the captions."""
    return importlib.import_module("ingot").open(path, spec=FORMATS[key].spec)


def epoch_ingot(key: str, path: Path, seed: int) -> Iterator[Sample]:
    """Read all samples in random order, in batches."""
    ds = open_ingot(key, path)
    names = list(FORMATS[key].spec)
    order = np.random.default_rng(seed).permutation(len(ds))
    for start in range(0, len(order), BATCH):
        batch = ds[order[start : start + BATCH]]
        yield from zip(*(batch[name] for name in names), strict=True)


def index_beside(path: Path, *, anew: bool = False) -> Path:
    """Have Ingot keep its index beside a directory, and return where; `anew` deletes what is."""
    index = path.with_name(f"{path.name}-index")
    if anew:
        shutil.rmtree(index, ignore_errors=True)
    index.mkdir(exist_ok=True)
    os.environ["INGOT_INDEX_DIR"] = str(index)
    return index
