"""What Bagz calls its files, as the bags that it stands for."""

import os
import re
from pathlib import Path
from typing import Literal

from ingot.compat.bagz.options import (
    Compression,
    CompressionAutoDetect,
    CompressionZstd,
    LimitsPlacement,
)
from ingot.records.bag import BagFile
from ingot.records.paths import shards, text_of

_FILE_SYSTEM = re.compile(r"/?([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


def paths_of(file_spec: str | os.PathLike[str]) -> list[str]:
    """Return the files of a list, separated by commas, of paths and sharded paths.

    Raises:
        FileNotFoundError: There are none, or they are on another file system.
    """
    spec = text_of(file_spec)
    paths = [path for one in spec.split(",") if one for path in shards(local(one)) or [local(one)]]
    if not paths:
        message = f"{spec!r}: there are no files to open"
        raise FileNotFoundError(message)
    return paths


def local(path: str) -> str:
    """Return a path without the name of the local file system, which may be in front of it.

    Raises:
        FileNotFoundError: It has the name of another file system in front.
    """
    path = os.path.expanduser(path)  # noqa: PTH111 -- no user is no error
    found = _FILE_SYSTEM.fullmatch(path)
    if found is None or Path(path).exists():
        return path
    if found[1] == "posix":
        return found[2]
    message = f"{path}: there is no file system {found[1]!r} here; copy the files to a local one"
    raise FileNotFoundError(message)


def limits_path(path: str, placement: LimitsPlacement) -> str | None:
    """Return the file of the limits of a bag, if they have one of their own."""
    if placement is LimitsPlacement.TAIL:
        return None
    one = Path(path)
    return str(one.with_name(f"limits.{one.name}"))


def level_of(path: str, compression: Compression) -> int | None:
    """Return the level of zstd that a bag is written with; None if it is not compressed."""
    if isinstance(compression, CompressionZstd):
        return compression.level
    by_name = isinstance(compression, CompressionAutoDetect) and path.endswith(".bagz")
    return 0 if by_name else None


def dictionary_of(compression: Compression) -> bytes:
    """Return the dictionary that a bag is written with; empty if there is none."""
    return compression.dictionary_bytes if isinstance(compression, CompressionZstd) else b""


def bag_file(path: str, placement: LimitsPlacement, compression: Compression) -> BagFile:
    """Return how a bag is read."""
    stored: Literal["none", "zstd"] = "none" if level_of(path, compression) is None else "zstd"
    return BagFile(path, limits_path(path, placement), stored, dictionary_of(compression))
