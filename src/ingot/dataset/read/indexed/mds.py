"""MDS, the format of Streaming: an `index.json` and shards."""

import hashlib
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ingot.dataset.read.indexed.folder import INDEX, Listed, Shard, check_name
from ingot.errors import FormatError, UnsupportedVersionError

_VERSION = 2
_STEP = 1 << 20


def mds(folder: Path, index: Mapping[str, Any]) -> Listed | None:
    """Return what an `index.json` of MDS says; None if it is of something else.

    Raises:
        FormatError: It is damaged, or of another format of Streaming.
    """
    shards = index.get("shards")
    if not isinstance(shards, list) or "version" not in index:
        return None
    try:
        columns = {_columns(one, folder) for one in shards}
        listed = [_shard(one, folder) for one in shards]
        hashes = {one.name: _hashes(given, one) for one, given in zip(listed, shards, strict=True)}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        message = f"{folder / INDEX}: this is not an index of MDS: {type(error).__name__} {error}"
        raise FormatError(message, str(folder)) from error
    if len(columns) > 1:
        message = f"{folder / INDEX}: the shards have different columns"
        raise FormatError(message, str(folder))
    layout = {"format": "mds", "columns": [list(one) for one in next(iter(columns), ())]}
    return Listed("an MDS data set", json.dumps(layout), listed, lambda at: _damage(at, hashes))


def _columns(shard: Mapping[str, Any], folder: Path) -> tuple[tuple[str, str], ...]:
    if shard["format"] != "mds":
        message = f"{folder}: shards of format {shard['format']!r} are not read, only mds"
        raise FormatError(message, str(folder))
    if shard["version"] != _VERSION:
        raise UnsupportedVersionError(
            f"{folder}: MDS version {shard['version']} is not read, only {_VERSION}", str(folder)
        )
    return tuple(zip(shard["column_names"], shard["column_encodings"], strict=True))


def _shard(shard: Mapping[str, Any], folder: Path) -> Shard:
    """Return the file of a shard: the one without compression, if it is there."""
    raw, packed = shard["raw_data"], shard["zip_data"]
    raw_name, nbytes, rows = check_name(raw["basename"], folder), raw["bytes"], shard["samples"]
    if packed is None or (folder / raw_name).is_file():
        return Shard(raw_name, rows, nbytes)
    compression = str(shard["compression"]).partition(":")[0]
    name = check_name(packed["basename"], folder)
    return Shard(name, rows, packed["bytes"], compression, nbytes)


def _hashes(shard: Mapping[str, Any], chosen: Shard) -> dict[str, str]:
    """Return the checksums of the file that is read, by algorithm."""
    data = shard["raw_data"] if chosen.compression is None else shard["zip_data"]
    return dict(data["hashes"])


def _damage(folder: Path, hashes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the files whose checksums are not those that are listed."""
    found = {}
    for name, listed in hashes.items():
        for algorithm, expected in listed.items():
            digest = _digest(folder / name, algorithm)
            if digest is not None and digest != expected:
                found[name] = f"{folder / name}: {algorithm} is {digest}, {INDEX} lists {expected}"
    return found


def _digest(path: Path, algorithm: str) -> str | None:
    """Return the checksum of a file; None if nothing here computes it."""
    if algorithm in hashlib.algorithms_available:
        state = hashlib.new(algorithm)
    elif algorithm.startswith("xxh"):
        try:
            state = getattr(import_module("xxhash"), algorithm)()
        except (ImportError, AttributeError):
            return None
    else:
        return None
    with path.open("rb") as file:
        while part := file.read(_STEP):
            state.update(part)
    digest: str = state.hexdigest()
    return digest
