"""The tree of a pack, which maps files to records. It is the last record."""

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np

from ingot._core import decode_tree
from ingot.errors import FormatError, UnsupportedVersionError
from ingot.records import Reader
from ingot.records.expand import StrPath, text_of

Tree: TypeAlias = dict[str, "int | Tree"]

METADATA_KEY = "ingot.packed"
VERSION = 1
DEPTH_MAX = 256
"""How deeply folders may be nested: the JSON parser recurses once per level."""

PATH_LEN_MAX = 4096
"""The maximum length of a path: no system takes a longer one."""

_FFRECORD_MAGIC = b"piouhjgbr"
_RESERVED = frozenset({"", ".", ".."})
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))


def encode(tree: Tree) -> bytes:
    """Encode `tree` as a record."""
    return json.dumps({"version": VERSION, "tree": tree}, separators=(",", ":")).encode()


def read(reader: Reader) -> tuple[Tree, int]:
    """Return the tree of a pack, and the number of files in it.

    Raises:
        FormatError: The file is not a pack, or its tree is invalid.
        UnsupportedVersionError: It was packed by a later version.
    """
    if len(reader.paths) != 1:
        message = f"{reader.path}: expected a pack in one file, got {len(reader.paths)} files"
        raise FormatError(message, reader.path)
    version = reader.metadata.get(METADATA_KEY)
    record = reader[-1] if len(reader) else b""
    if version is not None:
        _check_version(version, reader.path)
        tree = _decode(record, reader.path)
    elif record.startswith(_FFRECORD_MAGIC):
        tree = decode_tree(record, len(reader) - 1, reader.path)
    else:
        raise FormatError(f"{reader.path}: this record file is not a packed folder", reader.path)
    return tree, _check(tree, len(reader) - 1, reader.path)


def parts_of(path: StrPath) -> list[str]:
    """Return the components of `path`; invalid ones stay in the list.

    No entry is named `/` or `..`, so an absolute path, or one that goes up, is never
    found.
    """
    text = path.as_posix() if isinstance(path, PurePath) else text_of(path)
    parts = text.split("/")
    if "" in parts or "." in parts:
        parts = [part for part in parts if part not in {"", "."}]
        return ["/", *parts] if text.startswith("/") else parts
    return parts


def find(tree: Tree, parts: Iterable[str]) -> "int | Tree | None":
    """Return the record of the file, or the tree of the folder, at `parts`."""
    entry: int | Tree | None = tree
    for part in parts:
        if not isinstance(entry, dict):
            return None
        entry = entry.get(part)
    return entry


def walk(tree: Tree) -> "Iterator[tuple[str, str, int | Tree]]":
    """Yield everything in `tree`: the path of its folder with a `/`, its name, the entry.

    A folder comes before its contents.
    """
    above = [("", iter(tree.items()))]
    while above:
        prefix, items = above[-1]
        for name, entry in items:
            yield prefix, name, entry
            if isinstance(entry, dict):
                above.append((f"{prefix}{name}/", iter(entry.items())))
                break
        else:
            above.pop()


def entries(tree: Tree) -> "Iterator[tuple[str, int | Tree]]":
    """Yield the path and the entry of everything in `tree`, a folder before its contents."""
    return ((prefix + name, entry) for prefix, name, entry in walk(tree))


def rows(tree: Tree) -> Iterator[int]:
    """Yield the record of each file in `tree`."""
    return (entry for _, _, entry in walk(tree) if isinstance(entry, int))


def _check_version(version: object, path: str) -> None:
    if type(version) is not int or version < 1:
        message = f"{path}: the version of this pack is {version!r}, expected a positive number"
        raise FormatError(message, path)
    if version > VERSION:
        message = f"{path}: a pack of version {version}; this Ingot reads up to version {VERSION}"
        raise UnsupportedVersionError(message, path, version, VERSION)


def _decode(record: bytes, path: str) -> Tree:
    if _depth(record) > DEPTH_MAX + 2:  # The tree itself, and the object that contains it.
        raise _too_deep(path)
    try:
        loaded = json.loads(record.decode(), object_pairs_hook=_distinct)
    except ValueError as error:
        message = f"{path}: the tree of this pack is not valid JSON: {error}"
        raise FormatError(message, path) from error
    if not isinstance(loaded, dict) or not isinstance(loaded.get("tree"), dict):
        raise FormatError(f"{path}: the last record of this pack is not a tree", path)
    _check_version(loaded.get("version"), path)
    tree: Tree = loaded["tree"]
    return tree


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    distinct = dict(pairs)
    if len(distinct) != len(pairs):
        raise ValueError("two entries of a folder have the same name")
    return distinct


def _depth(text: bytes) -> int:
    """Return how deeply JSON is nested, without recursion."""
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_strings = b"".join(unescaped.split(b'"')[::2])
    brackets = np.frombuffer(outside_strings.translate(None, _NO_BRACKETS), np.uint8)
    steps = np.where(np.isin(brackets, list(b"{[")), 1, -1)
    return int(steps.cumsum().max(initial=0))


def _too_deep(path: str) -> FormatError:
    return FormatError(f"{path}: the tree of this pack is deeper than {DEPTH_MAX} folders", path)


def _check(tree: Tree, num_records: int, path: str) -> int:
    """Return the number of files, if every name is valid and every record exists."""
    num_files = 0
    folders = [(tree, 0, 0)]
    while folders:
        folder, depth, length = folders.pop()
        if depth > DEPTH_MAX:
            raise _too_deep(path)
        if length + max(map(len, folder), default=0) > PATH_LEN_MAX:
            message = f"{path}: a path in the tree of this pack is longer than {PATH_LEN_MAX}"
            raise FormatError(message, path)
        names = "".join(folder)
        if "/" in names or "\0" in names or not _RESERVED.isdisjoint(folder):
            _refuse_name(folder, path)
        if not names.isascii() and len({_on_disk(name) for name in folder}) < len(folder):
            message = f"{path}: two names in a folder of this pack are the same file name on disk"
            raise FormatError(message, path)
        for name, entry in folder.items():
            if isinstance(entry, dict):
                folders.append((entry, depth + 1, length + len(name) + 1))
            elif type(entry) is int and 0 <= entry < num_records:
                num_files += 1
            else:
                message = (
                    f"{path}: {name!r} in the tree of this pack is {entry!r}, expected "
                    f"a folder or one of {num_records} records"
                )
                raise FormatError(message, path)
    return num_files


def _on_disk(name: str) -> bytes | str:
    """Return the name of a file as bytes; if no file can have it, the name itself."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name


def _refuse_name(folder: Tree, path: str) -> None:
    for name in folder:
        if name in _RESERVED or "/" in name or "\0" in name:
            message = f"{path}: {name!r} in the tree of this pack is not a valid file name"
            raise FormatError(message, path)
