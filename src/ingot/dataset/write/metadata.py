"""The metadata that users store with a data set."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ingot.dataset import atomic
from ingot.dataset.manifest import Manifest
from ingot.records.expand import absolute

_BYTES_MAX = 15 << 20


def set_metadata(
    path: str | os.PathLike[str], metadata: dict[str, Any], *, sync: bool = True
) -> None:
    """Replace the metadata of a data set in a directory, in one step.

    A data set in a single file has its metadata inside the file: copy it with
    `ds.save(path, metadata=...)`.

    Args:
        path: The directory.
        metadata: A dict of JSON values, which replaces the present metadata.
        sync: Whether to wait until it is on the storage device.

    Raises:
        FileNotFoundError: There is no data set in this directory.
        NotADirectoryError: The path is a single file.

    Example:
        >>> ingot.set_metadata("cats", {**ingot.open("cats").metadata, "license": "CC0"})
        ... # doctest: +SKIP
    """
    folder = absolute(path)
    text = json_of(metadata)
    if folder.is_file():
        message = f"{folder}: one file keeps its metadata; copy it: ds.save(path, metadata=...)"
        raise NotADirectoryError(message)
    with atomic.locked(folder):
        found = replace(Manifest.read(folder), metadata=json.loads(text))
        found.replace(folder, sync=sync)


def check_metadata(path: Path, found: dict[str, Any], given: dict[str, Any] | None) -> None:
    """Refuse metadata that differ from those of the data set to append to, by a ValueError."""
    if given is not None and json.loads(json_of(given)) != found:
        message = f"{path}: append=True keeps the metadata {found!r:.200}; omit metadata="
        raise ValueError(message)


def json_of(metadata: object) -> str:
    """Return metadata as JSON.

    Raises:
        TypeError: It is not a dict, or holds something that is not a JSON value.
        ValueError: It holds NaN or infinity, or is nested too deeply.
    """
    if not isinstance(metadata, dict):
        message = f"metadata must be a dict, got {type(metadata).__name__}"
        raise TypeError(message)
    try:
        text = json.dumps(metadata, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"metadata must hold JSON values only: {error}"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(message) from error
    if len(text) > _BYTES_MAX:
        message = f"metadata takes {len(text):,} bytes; at most {_BYTES_MAX:,} are allowed"
        raise ValueError(message)
    return text
