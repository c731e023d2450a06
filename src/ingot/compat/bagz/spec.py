"""The files that a `file_spec` of Bagz refers to, and the errors that they raise."""

import os
import re
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import ingot
from ingot.compat.bagz.options import (
    Compression,
    CompressionAutoDetect,
    CompressionZstd,
    LimitsPlacement,
)
from ingot.compat.handle import refused
from ingot.errors import StorageError
from ingot.formats.bag import BagFile

_FILE_SYSTEM = re.compile(r"/?([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


class OpenError(StorageError, ValueError):
    """The system refused to open or write a file."""


class MissingFolderError(OpenError, FileNotFoundError):
    """The folder to write to does not exist."""


def translated(error: OSError, path: str) -> OpenError:
    """Return the exception that Bagz's users catch for an error of the system."""
    return refused(error, path, OpenError, MissingFolderError)


def paths_of(file_spec: str | os.PathLike[str]) -> list[str]:
    """Return the files of a comma-separated list of paths and sharded paths.

    Raises:
        FileNotFoundError: No file matches, or a file is on another file system.
    """
    spec = os.fspath(file_spec)
    each = [local(one) for one in spec.split(",") if one]
    # Shards are named as Ingot names them. Other patterns are names of files in Bagz.
    paths = [path for one in each for path in (ingot.list_files(one) if "@" in one else [one])]
    if not paths:
        message = f"{spec!r}: there are no files to open"
        raise FileNotFoundError(message)
    return paths


def local(path: str | os.PathLike[str]) -> str:
    """Return a path without a prefix that names the local file system.

    Raises:
        FileNotFoundError: The prefix names another file system.
    """
    path = os.path.expanduser(os.fspath(path))  # noqa: PTH111 -- no user is no error
    found = _FILE_SYSTEM.fullmatch(path)
    if found is None or Path(path).exists():
        return path
    if found[1] == "posix":
        return found[2]
    if found[1] == "file":
        return unquote(urlsplit(path).path)
    message = f"{path}: no file system {found[1]!r}; copy the files to the local file system"
    raise FileNotFoundError(message)


def limits_path(path: str, placement: LimitsPlacement) -> str | None:
    """Return the separate file of the limits of a bag, if it has one."""
    if placement is LimitsPlacement.TAIL:
        return None
    one = Path(path)
    return str(one.with_name(f"limits.{one.name}"))


def level_of(path: str, compression: Compression) -> int | None:
    """Return the level of zstd of a bag to write; None if it is not compressed."""
    if isinstance(compression, CompressionZstd):
        return compression.level
    by_name = isinstance(compression, CompressionAutoDetect) and path.endswith(".bagz")
    return 0 if by_name else None


def dictionary_of(compression: Compression) -> bytes:
    """Return the dictionary of a bag to write, possibly empty."""
    if not isinstance(compression, CompressionZstd):
        return b""
    dictionary = compression.dictionary
    return dictionary.encode() if isinstance(dictionary, str) else dictionary


def bag_file(path: str, placement: LimitsPlacement, compression: Compression) -> BagFile:
    """Return the properties of a bag to read."""
    stored: Literal["none", "zstd"] = "none" if level_of(path, compression) is None else "zstd"
    return BagFile(path, limits_path(path, placement), stored, dictionary_of(compression))
