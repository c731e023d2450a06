"""The layout of a Granular folder, and paths to one: local, or objects with their interface.

```
spec.json             the keys and their types
KEY.bag, KEY.idx      the values of a key, one for each row: as of 0.22
KEY.bag, refs.bag     the values of a key, and which of them a row has: up to 0.21
000000/, 000001/, ... such folders, in order
```
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, TypeGuard, cast

from ingot.dataset.atomic import object_of, parsing
from ingot.errors import FormatError
from ingot.records.expand import StrPath, absolute

SPEC = "spec.json"
"""The file with the keys and types of a folder."""
HIDDEN_SPEC = f".{SPEC}.unfinished"
REFS = "refs"
"""The name of the bag of references, up to Granular 0.21."""

_SPEC_BYTES = 1 << 20
_KEY = re.compile(r"[a-z_][^/\\\x00-\x1f\x7f]*")
_KEY_BYTES = 200
_TYPE = re.compile(r"[a-z_][ -~]{0,199}")
_SHARD = re.compile(r"[0-9]{6,18}")


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


def check_spec(spec: object) -> dict[str, str]:
    """Return the keys of a data set and their types, in the order of the keys.

    Raises:
        TypeError: It is not a dict of strings.
        ValueError: A key is not a valid file name, or a type is invalid.
    """
    if not isinstance(spec, dict) or not spec:
        message = "a specification must be a dict of one or more keys and their types"
        raise TypeError(message)
    for key, kind in spec.items():
        if not isinstance(key, str) or not _is_key(key):
            message = f"invalid key {key!r}: it must begin with a-z or _ and be a valid file name"
            raise ValueError(message)
        if not isinstance(kind, str) or _TYPE.fullmatch(kind) is None:
            message = f"key {key!r}: invalid type {kind!r}: it must begin with a-z or _"
            raise ValueError(message)
    return dict(sorted(spec.items()))


def _is_key(key: str) -> bool:
    return _KEY.fullmatch(key) is not None and len(key.encode()) <= _KEY_BYTES


def is_sequence(kind: str) -> bool:
    """Return whether a row has any number of values of this type."""
    return kind.endswith("[]")


def element(kind: str) -> str:
    """Return the type of one value."""
    return kind.removesuffix("[]")


def parse_spec(content: bytes, path: Path | PathLike) -> dict[str, str]:
    """Return the specification in a `spec.json`.

    Raises:
        FormatError: It is invalid.
    """
    with parsing(cast(Path, path), "the specification of a Granular data set"):
        if len(content) > _SPEC_BYTES:
            message = f"it has more than {_SPEC_BYTES} bytes"
            raise ValueError(message)
        return check_spec(object_of(content))


def read_spec(folder: Path | PathLike) -> dict[str, str]:
    """Return the specification of a folder.

    Raises:
        FileNotFoundError: There is none.
        FormatError: It is damaged.
    """
    path = folder / SPEC
    with path.open("rb") as file:
        return parse_spec(file.read(_SPEC_BYTES + 1), path)


def shard_name(number: int) -> str:
    """Return the name of the folder of a shard."""
    return f"{number:06}"


def shards(names: Iterable[str], path: str) -> list[str]:
    """Return the names of the shards among `names`, in order; ignore other names.

    Raises:
        FormatError: One is missing.
    """
    found = sorted((name for name in names if _SHARD.fullmatch(name)), key=int)
    expected = [shard_name(number) for number in range(len(found))]
    if found != expected:
        missing = next(name for name, other in zip(expected, found, strict=True) if name != other)
        message = f"{path}: shard {missing} is missing; found {', '.join(found[:10])}"
        raise FormatError(message, path)
    return found
