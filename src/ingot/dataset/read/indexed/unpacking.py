"""Files that are compressed as a whole, decompressed once."""

import os
from collections.abc import Sequence
from pathlib import Path

from ingot._core import unpack
from ingot.records.formats import COMPRESSIONS


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
    compression = COMPRESSIONS.get(Path(path).suffix.lower())
    return path if compression is None else os.fspath(unpack(path, compression, None, folder))
