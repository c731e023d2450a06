"""What users store with a data set."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ingot.dataset import folder as folders
from ingot.dataset.manifest import Manifest
from ingot.records.paths import absolute


def set_metadata(
    path: str | os.PathLike[str], metadata: dict[str, Any], *, sync: bool = True
) -> None:
    """Replace the metadata of a data set in a directory, at once or not at all.

    Of a data set in one file they are part of the file: `ds.save(path, metadata=...)` copies
    it with other metadata.

    Args:
        path: The directory.
        metadata: A JSON-able dict, which takes the place of what is there.
        sync: Whether to wait until the device has it.

    Raises:
        FileNotFoundError: There is no data set in this directory.
        NotADirectoryError: It is one file.

    Example:
        >>> ingot.set_metadata("cats", {**ingot.open("cats").metadata, "license": "CC0"})
        ... # doctest: +SKIP
    """
    folder = absolute(path)
    text = json_of(metadata)
    if folder.is_file():
        message = f"{folder}: the metadata of one file stay; ds.save(path, metadata=...) copies it"
        raise NotADirectoryError(message)
    with folders.locked(folder):
        found = replace(Manifest.read(folder), metadata=json.loads(text))
        found.replace(folder, sync=sync)


def check_metadata(path: Path, found: dict[str, Any], given: dict[str, Any] | None) -> None:
    """Refuse other metadata than those of the data set that is gone on with.

    Raises:
        ValueError: They are others.
    """
    if given is not None and json.loads(json_of(given)) != found:
        message = f"{path}: append=True goes on with the metadata {found!r:.200}; leave it out"
        raise ValueError(message)


def json_of(metadata: object) -> str:
    """Return metadata as JSON.

    Raises:
        TypeError: It is no dict, or JSON has no word for something in it.
        ValueError: A number in it is none, or it is too deep.
    """
    if not isinstance(metadata, dict):
        message = f"metadata is a dict, not {type(metadata).__name__}"
        raise TypeError(message)
    try:
        return json.dumps(metadata, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"metadata is what JSON can say: {error}"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(message) from error
