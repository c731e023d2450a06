"""MDS, the format of Streaming: an `index.json` and shards."""

import hashlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ingot.dataset.read.source import Source
from ingot.errors import CorruptFileError, FormatError, UnsupportedVersionError
from ingot.formats.listed import INDEX, Listed, Shard, check_name, listed_in, open_listed
from ingot.formats.options import Options

_VERSION = 2
_STEP = 8 << 20


def open_directory(folder: Path, options: Options) -> Source | None:
    """Open a directory with an `index.json` of MDS; return None for any other."""
    listed = listed_in(folder, parse)
    return None if listed is None else open_listed(str(folder), parse, options, listed)


def parse(folder: Path, index: Mapping[str, Any]) -> Listed | None:
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
    details = {"columns": [list(one) for one in next(iter(columns), ())]}

    def check(folder: Path, name: str, *, strict: bool) -> Iterator[None]:
        return _check_hashes(folder / name, hashes[name], strict=strict)

    return Listed("mds", "an MDS data set", details, listed, check)


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


def _check_hashes(path: Path, listed: Mapping[str, str], *, strict: bool) -> Iterator[None]:
    """Compare the checksums of a file with those that are listed, and yield now and then.

    Args:
        path: The file.
        listed: Its checksums, by algorithm.
        strict: Whether an algorithm that is not known here is an error; else it is left out.

    Raises:
        CorruptFileError: A checksum differs.
        FormatError: An algorithm is not known here.
    """
    states = {algorithm: _state(algorithm) for algorithm in listed}
    unknown = [algorithm for algorithm, state in states.items() if state is None]
    if strict and unknown:
        note = "; install xxhash" if unknown[0].startswith("xxh") else ""
        message = f"{path}: its checksum {unknown[0]!r} cannot be computed here{note}"
        raise FormatError(message, str(path))
    known = {algorithm: state for algorithm, state in states.items() if state is not None}
    if not known:
        return
    with path.open("rb") as file:
        while part := file.read(_STEP):
            for state in known.values():
                state.update(part)
            yield
    for algorithm, state in known.items():
        if (digest := state.hexdigest()) != listed[algorithm]:
            message = (
                f"{path}: {algorithm} is {digest}, but {listed[algorithm]} is listed: the file is "
                "damaged; copy it again"
            )
            raise CorruptFileError(message, str(path))


def _state(algorithm: str) -> Any:
    """Return what computes a checksum; None if nothing here does."""
    if algorithm.startswith("xxh"):
        try:
            return getattr(import_module("xxhash"), algorithm)()
        except (ImportError, AttributeError, TypeError):
            return None
    try:
        state = hashlib.new(algorithm, usedforsecurity=False)
    except ValueError:
        return None
    # Those of any length do not say which.
    return state if state.digest_size else None
