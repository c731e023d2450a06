"""MDS, the format of Streaming: an `index.json` and shards."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ingot.dataset.read.indexed.folder import INDEX, Listed, Shard, check_name
from ingot.dataset.read.indexed.hashes import check_hashes
from ingot.errors import FormatError, UnsupportedVersionError

_VERSION = 2


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

    def check(folder: Path, name: str, *, strict: bool) -> Iterator[None]:
        return check_hashes(folder / name, hashes[name], strict=strict)

    return Listed("an MDS data set", json.dumps(layout), listed, check)


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
