"""Paths of Granular's files and folders: local ones, or objects with the interface of a path."""

import os
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, TypeGuard, cast

from ingot.records.expand import StrPath, absolute


class PathLike(Protocol):
    """A path of another file system, with what Granular requires, such as `elements.Path`."""

    @property
    def name(self) -> str:
        """The last component."""

    def __truediv__(self, other: str) -> "PathLike": ...
    def open(self, mode: str) -> IO[bytes]:
        """Open the file."""

    def exists(self) -> bool:
        """Return whether it exists."""

    def mkdir(self) -> None:
        """Create the folder."""

    def glob(self, pattern: str) -> Any:
        """Return the entries of the folder."""

    def with_suffix(self, suffix: str) -> "PathLike":
        """Return the path with another suffix."""


AnyPath: TypeAlias = StrPath | PathLike
"""A local path, or a path object of another file system."""


def is_local(path: object) -> TypeGuard[StrPath]:
    """Return whether a path is a local one, which the engine reads and writes."""
    if isinstance(path, str):
        return True
    if not isinstance(path, os.PathLike):
        return False
    return "://" not in os.fspath(path) or not hasattr(path, "open")


def local(path: AnyPath) -> Path | PathLike:
    """Return a local path as an absolute one, and any other unchanged.

    Raises:
        TypeError: It is not a path.
    """
    if is_local(path):
        return absolute(path)
    if not hasattr(path, "open"):
        message = f"expected a path, got {type(path).__name__}"
        raise TypeError(message)
    return cast(PathLike, path)
