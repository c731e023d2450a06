"""Tars made into data sets: by Ingot, by LitData, and by a loop into Streaming's writer."""

from __future__ import annotations

import importlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from formats import COLUMNS, index_beside, streaming

UNCHECKED = "ingot, unchecked"


def samples_of_tar(tar: str) -> Iterator[dict[str, Any]]:
    """Yield what LitData is to store of a tar."""
    read = importlib.import_module("litdata").iter_webdataset_tar
    for one in read(tar):
        yield {"image": one["jpg"], "label": int(one["cls"]), "caption": one["txt"].decode()}


def _litdata(tars: Path, path: Path) -> None:
    files = sorted(map(str, tars.glob("*.tar")))
    importlib.import_module("litdata").optimize(
        samples_of_tar, files, str(path), chunk_bytes="64MB", num_workers=2, verbose=False
    )


def _mds(tars: Path, path: Path) -> None:
    webdataset = importlib.import_module("webdataset")
    files = sorted(map(str, tars.glob("*.tar")))
    data = webdataset.WebDataset(files, shardshuffle=False)
    with streaming().MDSWriter(out=str(path), columns=COLUMNS) as writer:
        for one in data:
            row = {"image": one["jpg"], "label": int(one["cls"]), "caption": one["txt"].decode()}
            writer.write(row)


def _ingot(tars: Path, path: Path) -> None:
    importlib.import_module("ingot").convert(tars, path, sync=False)


def _unchecked(tars: Path, path: Path) -> None:
    importlib.import_module("ingot").convert(tars, path, check=False, sync=False)


CONVERTERS: dict[str, Callable[[Path, Path], None]] = {
    "ingot": _ingot,
    UNCHECKED: _unchecked,
    "litdata": _litdata,
    "streaming": _mds,
}
"""What makes a data set of a directory of tars."""

NOTES = {
    "ingot": "ingot.convert to a data set directory",
    UNCHECKED: "check=False",
    "litdata": "litdata.optimize, two workers",
    "streaming": "a loop of webdataset into MDSWriter",
}


def seconds(system: str, stores: tuple[Path, Path], num_rows: int) -> float:
    """Return how long the second of two directories of tars takes, after the first."""
    target = stores[1].with_name("converted")
    taken = 0.0
    for tars in stores:
        shutil.rmtree(target, ignore_errors=True)
        index_beside(target, anew=True)
        start = time.perf_counter()
        CONVERTERS[system](tars, target)
        taken = time.perf_counter() - start
    if _count(target) != num_rows:
        message = f"{system}: {_count(target)} rows of {num_rows}"
        raise ValueError(message)
    shutil.rmtree(target)
    return taken


def _count(target: Path) -> int:
    """Return how many rows a data set has."""
    index = target / "index.json"
    if not index.exists():
        return len(importlib.import_module("ingot").open(target))
    listed = json.loads(index.read_text())
    return sum(
        one.get("samples", one.get("chunk_size"))
        for one in listed.get("shards", listed.get("chunks"))
    )
