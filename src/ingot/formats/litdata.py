"""LitData: an `index.json` and chunks."""

import json
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ingot.dataset.atomic import parsing
from ingot.dataset.read.source import Source
from ingot.errors import FormatError
from ingot.formats.base.listed import INDEX, Listed, Shard, check_name, listed_in, open_listed
from ingot.formats.base.options import Options

_DEPTH = 32
_ALONE = "value"
"""The field of items that are one value."""

_TAIL = struct.Struct("<I8s")
_MAGIC = b"LDARW01\0"
"""How a chunk that holds an Arrow file ends, after the length of that file."""


def open_directory(folder: Path, options: Options) -> Source | None:
    """Open a directory with an `index.json` of LitData; return None for any other."""
    listed = listed_in(folder, parse)
    if listed is None:
        return None
    if listed.shards and arrow_span(folder / listed.shards[0].name) is not None:
        from ingot.formats.arrow.litdata import open_chunks  # noqa: PLC0415 -- only these need Arrow

        return open_chunks(folder, options)
    return open_listed(str(folder), parse, options, listed)


def parse(folder: Path, index: Mapping[str, Any]) -> Listed | None:
    """Return what an `index.json` of LitData says; None if it is of something else.

    Raises:
        FormatError: It is damaged, or its chunks are not read in place.
    """
    chunks, config = index.get("chunks"), index.get("config")
    if not isinstance(chunks, list) or not isinstance(config, dict):
        return None
    with parsing(folder / INDEX, "an index of LitData"):
        _check(folder, config)
        _, item = json.loads(config["data_spec"])
        leaves = [list(one) for one in zip(_leaves(item), config["data_format"], strict=True)]
        shards = [_shard(one, folder, config) for one in chunks]
    return Listed("litdata", {"leaves": leaves}, shards)


def arrow_span(path: Path) -> range | None:
    """Return where the Arrow file in a chunk is; None if the chunk has its items one by one.

    LitData writes such chunks for items of plain values. The offsets in front of the Arrow file
    say that the items are empty.
    """
    try:
        with path.open("rb") as file:
            head = file.read(8)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL.size))
            tail = file.read(_TAIL.size)
    except FileNotFoundError:
        return None
    if len(head) < 8 or len(tail) < _TAIL.size:  # noqa: PLR2004
        return None
    count, first = struct.unpack("<II", head)
    length, magic = _TAIL.unpack(tail)
    start = 4 * (count + 2)
    if magic != _MAGIC or first != start or start + length + _TAIL.size != size:
        return None
    return range(start, start + length)


def _check(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse chunks whose items cannot be found."""
    loader = config.get("item_loader") or "PyTreeLoader"
    if loader != "PyTreeLoader":
        message = f"{folder}: unsupported chunks for {loader}, expected PyTreeLoader"
        raise FormatError(message, str(folder))
    if config.get("encryption"):
        message = f"{folder}: the chunks are encrypted"
        raise FormatError(message, str(folder))


def _leaves(spec: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the names of the leaves of an item, in order."""
    if len(above) > _DEPTH:
        message = "the items are nested too deeply"
        raise ValueError(message)
    kind, children = spec["type"], spec["children_spec"]
    if kind is None:
        yield ".".join(above) or _ALONE
        return
    keys = json.loads(spec["context"]) if kind.endswith(("dict", "Dict")) else range(len(children))
    for key, child in zip(keys, children, strict=True):
        yield from _leaves(child, (*above, str(key)))


def _shard(chunk: Mapping[str, Any], folder: Path, config: Mapping[str, Any]) -> Shard:
    name, rows = check_name(chunk["filename"], folder), chunk["chunk_size"]
    if not config.get("compression"):
        return Shard(name, rows, chunk["chunk_bytes"])
    algorithm = str(config["compression"]).partition(":")[0]
    is_inside = config.get("compression_level") in ("batch", "sample")
    return Shard(name, rows, None, "litdata" if is_inside else algorithm)
