"""Files that are compressed as a whole, decompressed once."""

import os
from collections.abc import Sequence
from pathlib import Path

from ingot._core import unpack

_COMPRESSIONS = {".bz2": "bz2", ".gz": "gz", ".tgz": "gz", ".zst": "zstd"}
_SHORT = {".tgz": ".tar"}
"""The suffixes that stand for two."""


def plain_name(path: str) -> str:
    """Return the name that a file has without compression."""
    name = Path(path)
    suffix = name.suffix.lower()
    if suffix not in _COMPRESSIONS:
        return path
    return str(name.with_suffix(_SHORT.get(suffix, "")))


def unpacked(paths: Sequence[str], folder: str | None) -> list[str]:
    """Return the paths of files without compression.

    Files that are compressed are decompressed into `folder`, by default the user's cache
    directory. They stay there, so this is done once.

    Raises:
        CorruptFileError: A file cannot be decompressed.
        FormatError: A file decompresses to too many bytes.
    """
    return [_unpacked(path, folder) for path in paths]


def _unpacked(path: str, folder: str | None) -> str:
    compression = _COMPRESSIONS.get(Path(path).suffix.lower())
    return path if compression is None else os.fspath(unpack(path, compression, None, folder))
