"""What users name a file or a folder by: a path of this system, or an object like one."""

import os
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, TypeGuard, cast

from ingot.records.paths import absolute


class PathLike(Protocol):
    """A path of another file system, as Granular asks for it: `elements.Path` is one."""

    @property
    def name(self) -> str:
        """The last part."""

    def __truediv__(self, other: str) -> "PathLike": ...
    def open(self, mode: str) -> IO[bytes]:
        """Open the file."""

    def exists(self) -> bool:
        """Return whether there is something."""

    def mkdir(self) -> None:
        """Make a folder."""

    def glob(self, pattern: str) -> Any:
        """Return what is in the folder."""

    def with_suffix(self, suffix: str) -> "PathLike":
        """Return the path with another suffix."""


StrPath: TypeAlias = str | os.PathLike[str]
AnyPath: TypeAlias = StrPath | PathLike


def is_local(path: object) -> TypeGuard[StrPath]:
    """Return whether a path is one of this system, which the engine reads and writes."""
    if isinstance(path, str):
        return True
    if not isinstance(path, os.PathLike):
        return False
    return "://" not in os.fspath(path) or not hasattr(path, "open")


def local(path: AnyPath) -> Path | PathLike:
    """Return a path of this system as an absolute one, and any other as it is.

    Raises:
        TypeError: It is no path.
    """
    if is_local(path):
        return absolute(path)
    if not hasattr(path, "open"):
        message = f"expected a path, not {type(path).__name__}"
        raise TypeError(message)
    return cast(PathLike, path)
