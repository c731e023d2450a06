"""Rows and tables in HDF5 files, written and read by h5record, by h5py and by Ingot."""

from __future__ import annotations

import functools
import importlib
import itertools
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data import sentence
from peers import BATCH

WIDTH = 768
_WRITE_BATCH = 256
_BLOCK_ROWS = 1_000
_PEER = "h5record"
_OURS = "ingot.compat.h5record"

# h5record asks h5py on every row for what h5py does not do.
warnings.filterwarnings("ignore", "swmr=True only affects", UserWarning, _PEER)

Steps = Callable[[int], Iterator[int]]
"""Given a seed, reads at random for ever, and tells of each step how many rows it read."""


@dataclass(frozen=True)
class Way:
    """How one system reads.

    Attributes:
        system: Its name.
        file: The one of `FILES` that it reads.
        open: Opens it, checks some rows, and returns what reads at random.
        note: What the name leaves open.
    """

    system: str
    file: str
    open: Callable[[Path], Steps]
    note: str = ""


def row(index: int) -> dict[str, Any]:
    """Return a vector with one decimal, as embeddings are often stored, and a sentence."""
    vector = np.random.default_rng(index).standard_normal(WIDTH)
    return {"x": np.round(vector, 1).astype(np.float32), "text": sentence(index)}


@functools.cache
def rows(size: int) -> list[dict[str, Any]]:
    """Return the first rows, which stay in memory."""
    return [row(index) for index in range(size)]


def _dataset(module: str, path: Path, data: Any = None, compression: str | None = None) -> Any:
    """Open the file at `path`; it is written first if there is none."""
    h5record = importlib.import_module(module)
    schema = (h5record.FloatSequence("x"), h5record.String("text"))
    return h5record.H5Dataset(schema, str(path), data, compression=compression)


def _write_dataset(module: str, compression: str | None, path: Path, size: int) -> None:
    _dataset(module, path, rows(size), compression)


def _create(file: Any) -> tuple[Any, Any]:
    """Return data sets that grow, of the shapes that h5record gives them."""
    h5py = importlib.import_module("h5py")
    vector, text = h5py.vlen_dtype(np.float32), h5py.string_dtype()
    return (
        file.create_dataset("x", (0, 1), maxshape=(None, 1), dtype=vector),
        file.create_dataset("text", (0, 1), maxshape=(None, 1), dtype=text),
    )


def _write_rows_by_h5py(path: Path, size: int) -> None:
    with importlib.import_module("h5py").File(path, "w") as file:
        x, text = _create(file)
        for index, one in enumerate(rows(size)):
            x.resize(index + 1, axis=0)
            text.resize(index + 1, axis=0)
            x[index, 0] = one["x"]
            text[index, 0] = one["text"]


def _write_batches_by_h5py(path: Path, size: int) -> None:
    with importlib.import_module("h5py").File(path, "w") as file:
        x, text = _create(file)
        for start in range(0, size, _WRITE_BATCH):
            batch = rows(size)[start : start + _WRITE_BATCH]
            x.resize(start + len(batch), axis=0)
            text.resize(start + len(batch), axis=0)
            x[start:, 0] = [one["x"] for one in batch]
            text[start:, 0] = [one["text"] for one in batch]


def _block(number: int) -> np.ndarray:
    """Return 1,000 rows of a table."""
    return np.random.default_rng(number).standard_normal((_BLOCK_ROWS, WIDTH), np.float32)


def _write_table(chunks: tuple[int, int] | None, path: Path, size: int) -> None:
    with importlib.import_module("h5py").File(path, "w") as file:
        table = file.create_dataset("x", (size, WIDTH), np.float32, chunks=chunks)
        for start in range(0, size, _BLOCK_ROWS):
            table[start : start + _BLOCK_ROWS] = _block(start // _BLOCK_ROWS)


TABLES = {"contiguous.h5": None, "chunked.h5": (BATCH, WIDTH)}
"""Tables of floats, and the shape of their chunks."""

FILES: dict[str, Callable[[Path, int], None]] = {
    "h5record.h5": functools.partial(_write_dataset, _PEER, None),
    "h5record-gzip.h5": functools.partial(_write_dataset, _PEER, "gzip"),
    "h5py-rows.h5": _write_rows_by_h5py,
    "h5py-batches.h5": _write_batches_by_h5py,
    "ingot.h5": functools.partial(_write_dataset, _OURS, None),
    "ingot-gzip.h5": functools.partial(_write_dataset, _OURS, "gzip"),
    "ingot.ingot": functools.partial(_write_dataset, _OURS, None),
    "ingot-gzip.ingot": functools.partial(_write_dataset, _OURS, "gzip"),
    **{name: functools.partial(_write_table, chunks) for name, chunks in TABLES.items()},
}
"""What writes each file, given its path and how many rows."""


def check_file(path: Path) -> None:
    """Compare rows of a file that was written with those it was written from.

    An HDF5 file is read by h5py, whoever has written it.
    """
    opened = _open_dataset if path.suffix == ".ingot" else _open_by_h5py
    opened(path)


def _checked(size: int) -> list[int]:
    """Return some rows, in no order."""
    return np.random.default_rng(0).permutation(size)[:BATCH].tolist()


def _check(found: Iterable[tuple[Any, str]], size: int, what: str) -> None:
    """Compare pairs of a vector and a text, as read from the rows `_checked`."""
    for index, (vector, text) in zip(_checked(size), found, strict=True):
        expected = row(index)
        if not np.array_equal(vector, expected["x"]) or text != expected["text"]:
            message = f"{what}: row {index} differs from what was written"
            raise ValueError(message)


def _in_batches(read: Callable[[np.ndarray], int], size: int) -> Steps:
    def steps(seed: int) -> Iterator[int]:
        order = np.random.default_rng(seed).permutation(size)
        batches = order[: size // BATCH * BATCH].reshape(-1, BATCH)
        return map(read, itertools.cycle(batches))

    return steps


def _one_at_a_time(get: Callable[[int], Any], size: int) -> Steps:
    def read(indices: np.ndarray) -> int:
        for index in indices.tolist():
            get(index)
        return len(indices)

    return _in_batches(read, size)


def _open_dataset(path: Path, module: str = _OURS) -> Steps:
    ds = _dataset(module, path)
    found = (ds[index] for index in _checked(len(ds)))
    _check(((one["x"][0], one["text"]) for one in found), len(ds), f"{module} on {path.name}")
    return _one_at_a_time(ds.__getitem__, len(ds))


def _open_by_h5py(path: Path) -> Steps:
    """Open with data sets that stay open; h5record looks them up by name for every row."""
    file = importlib.import_module("h5py").File(path)
    x, text = file["x"], file["text"]

    def get(index: int) -> tuple[Any, str]:
        return x[index, 0], text[index, 0].decode()

    _check(map(get, _checked(len(x))), len(x), f"h5py on {path.name}")
    return _one_at_a_time(get, len(x))


def _open_loader(path: Path, module: str = _OURS) -> Steps:
    torch = importlib.import_module("torch")
    ds = _dataset(module, path)
    make = functools.partial(
        torch.utils.data.DataLoader, ds, batch_size=BATCH, num_workers=0, collate_fn=list
    )
    found = itertools.chain.from_iterable(make(sampler=_checked(len(ds))))
    _check(((one["x"][0], one["text"]) for one in found), len(ds), f"loader on {path.name}")
    loader = make(shuffle=True)

    def steps(seed: int) -> Iterator[int]:
        torch.manual_seed(seed)
        return map(len, itertools.chain.from_iterable(itertools.repeat(loader)))

    return steps


def _read_table(read: Callable[[np.ndarray], np.ndarray], size: int, checked: np.ndarray) -> Steps:
    """Return steps of `read`, which gives the rows `checked` of the table in this order."""
    expected = [_block(index // _BLOCK_ROWS)[index % _BLOCK_ROWS] for index in checked.tolist()]
    if not np.array_equal(read(checked), expected):
        message = "the rows of the table differ from those written"
        raise ValueError(message)
    return _in_batches(lambda indices: len(read(indices)), size)


def _open_fancy(path: Path) -> Steps:
    """Read by a list of indices, which h5py wants in increasing order."""
    x = importlib.import_module("h5py").File(path)["x"]
    return _read_table(lambda indices: x[np.sort(indices)], len(x), np.sort(_checked(len(x))))


def _open_by_row(path: Path) -> Steps:
    """Read row by row by `x[index]`, which is several times as fast as `read_direct`."""
    x = importlib.import_module("h5py").File(path)["x"]
    out = np.empty((BATCH, WIDTH), np.float32)

    def read(indices: np.ndarray) -> np.ndarray:
        for place, index in enumerate(indices.tolist()):
            out[place] = x[index]
        return out

    return _read_table(read, len(x), np.array(_checked(len(x))))


def _open_table(path: Path) -> Steps:
    ds = importlib.import_module("ingot").open(path)
    return _read_table(lambda indices: ds[indices]["x"], len(ds), np.array(_checked(len(ds))))


def _dataset_ways(open_file: Callable[..., Steps]) -> tuple[Way, ...]:
    return (
        Way("h5record", "h5record.h5", functools.partial(open_file, module=_PEER)),
        Way("ingot peer .h5", "h5record.h5", open_file, "the file that h5record wrote"),
        Way("ingot .h5", "ingot.h5", open_file),
        Way("ingot .ingot", "ingot.ingot", open_file),
    )


def _table_ways(file: str) -> tuple[Way, ...]:
    return (
        Way("h5py fancy", file, _open_fancy, "indices sorted"),
        Way("h5py rows", file, _open_by_row),
        Way("ingot", file, _open_table),
    )


WAYS: dict[str, tuple[Way, ...]] = {
    "one": (
        *_dataset_ways(_open_dataset),
        Way("h5py", "h5record.h5", _open_by_h5py, "the file that h5record wrote"),
    ),
    "loader": _dataset_ways(_open_loader),
    "contiguous": _table_ways("contiguous.h5"),
    "chunked": _table_ways("chunked.h5"),
}


def files(path: Path) -> list[Path]:
    """Return the files of what is at `path`, which may be a directory."""
    found = path.rglob("*") if path.is_dir() else [path]
    return [file for file in found if file.is_file()]


def remove(path: Path) -> None:
    """Delete what is at `path`, if anything is."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
