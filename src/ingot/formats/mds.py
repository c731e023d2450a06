"""MDS, the format of Streaming: an `index.json` and shards."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ingot.dataset.atomic import parsing
from ingot.dataset.read.source import Source
from ingot.errors import FormatError, UnsupportedVersionError
from ingot.formats.base.listed import INDEX, Listed, Shard, check_name, open_listed
from ingot.formats.base.options import Options

_VERSION = 2


def open_directory(folder: Path, options: Options) -> Source | None:
    """Open a directory with an `index.json` of MDS; return None for any other."""
    return open_listed(str(folder), parse, options)


def parse(folder: Path, index: Mapping[str, Any]) -> Listed | None:
    """Return what an `index.json` of MDS says; None if it is of something else.

    Raises:
        FormatError: It is damaged, or of another format of Streaming.
    """
    shards = index.get("shards")
    if not isinstance(shards, list) or "version" not in index:
        return None
    with parsing(folder / INDEX, "an index of MDS"):
        columns = {_columns(one, folder) for one in shards}
        listed = [_shard(one, folder) for one in shards]
    if len(columns) > 1:
        message = f"{folder / INDEX}: the shards have different columns"
        raise FormatError(message, str(folder))
    return Listed("mds", {"columns": [list(one) for one in next(iter(columns), ())]}, listed)


def _columns(shard: Mapping[str, Any], folder: Path) -> tuple[tuple[str, str], ...]:
    if shard["format"] != "mds":
        message = f"{folder}: unsupported shard format {shard['format']!r}, expected mds"
        raise FormatError(message, str(folder))
    if shard["version"] != _VERSION:
        raise UnsupportedVersionError(
            f"{folder}: unsupported MDS version {shard['version']}, expected {_VERSION}",
            str(folder),
        )
    return tuple(zip(shard["column_names"], shard["column_encodings"], strict=True))


def _shard(shard: Mapping[str, Any], folder: Path) -> Shard:
    """Return the file of a shard: the one without compression, if it is there."""
    raw, packed = shard["raw_data"], shard["zip_data"]
    name, nbytes, rows = check_name(raw["basename"], folder), raw["bytes"], shard["samples"]
    if packed is None or (folder / name).is_file():
        return Shard(name, rows, nbytes, hashes=dict(raw["hashes"]))
    compression = str(shard["compression"]).partition(":")[0]
    name = check_name(packed["basename"], folder)
    return Shard(name, rows, packed["bytes"], compression, nbytes, dict(packed["hashes"]))
