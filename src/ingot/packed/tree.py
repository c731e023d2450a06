"""The tree of a pack: which record holds which file. It is the last record."""

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np

from ingot.errors import FormatError, UnsupportedVersionError
from ingot.records import Reader
from ingot.records.ffrecord import decode_tree
from ingot.records.paths import StrPath, text_of

Tree: TypeAlias = dict[str, "int | Tree"]

METADATA_KEY = "ingot.packed"
VERSION = 1
DEPTH_MAX = 256
"""How deep folders may lie in one another: the parser of JSON goes down one call for each."""

PATH_LEN_MAX = 4096
"""How long a path may be: no system takes a longer one, and every file may have one."""

_FFRECORD_MAGIC = b"piouhjgbr"
_RESERVED = frozenset({"", ".", ".."})
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))


def encode(tree: Tree) -> bytes:
    """Return the record that holds `tree`."""
    return json.dumps({"version": VERSION, "tree": tree}, separators=(",", ":")).encode()


def read(reader: Reader) -> tuple[Tree, int]:
    """Return the tree of a pack, and how many files are in it.

    Raises:
        FormatError: The file is not a pack, or its tree is not one.
        UnsupportedVersionError: It was packed by a later version.
    """
    if len(reader.paths) != 1:
        message = f"{reader.path}: a pack is one file, not {len(reader.paths)}"
        raise FormatError(message, reader.path)
    version = reader.metadata.get(METADATA_KEY)
    record = reader[-1] if len(reader) else b""
    if version is not None:
        _check_version(version, reader.path)
        tree = _decode(record, reader.path)
    elif record.startswith(_FFRECORD_MAGIC):
        tree = decode_tree(record, len(reader) - 1, reader.path)
    else:
        message = f"{reader.path}: this record file is not a packed folder"
        raise FormatError(message, reader.path)
    return tree, _check(tree, len(reader) - 1, reader.path)


def parts_of(path: StrPath) -> list[str]:
    """Return the names along `path`. What no path in a pack can have stays as a name.

    No entry is named `/` or `..`, so that an absolute path, and one that goes up, lead
    nowhere.
    """
    text = path.as_posix() if isinstance(path, PurePath) else text_of(path)
    parts = text.split("/")
    if "" in parts or "." in parts:
        parts = [part for part in parts if part not in {"", "."}]
        return ["/", *parts] if text.startswith("/") else parts
    return parts


def find(tree: Tree, parts: Iterable[str]) -> "int | Tree | None":
    """Return the record of the file, or the tree of the folder, that `parts` lead to."""
    entry: int | Tree | None = tree
    for part in parts:
        if not isinstance(entry, dict):
            return None
        entry = entry.get(part)
    return entry


def walk(tree: Tree) -> "Iterator[tuple[str, str, int | Tree]]":
    """Yield everything in `tree`: the path of its folder with a `/`, its name, the entry.

    A folder comes before what is in it.
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
    """Yield the path and the entry of everything in `tree`, a folder before what is in it."""
    return ((prefix + name, entry) for prefix, name, entry in walk(tree))


def rows(tree: Tree) -> Iterator[int]:
    """Yield the record of each file in `tree`."""
    return (entry for _, _, entry in walk(tree) if isinstance(entry, int))


def _check_version(version: object, path: str) -> None:
    if type(version) is not int or version < 1:
        message = f"{path}: the version of this pack is {version!r}, expected a positive number"
        raise FormatError(message, path)
    if version > VERSION:
        message = f"{path}: version {version} of packed folders, this is Ingot for {VERSION}"
        raise UnsupportedVersionError(message, path, version, VERSION)


def _decode(record: bytes, path: str) -> Tree:
    if _depth(record) > DEPTH_MAX + 2:  # the tree itself, and what it stands in
        raise _too_deep(path)
    try:
        loaded = json.loads(record.decode(), object_pairs_hook=_distinct)
    except ValueError as error:
        message = f"{path}: the tree of this pack is not JSON: {error}"
        raise FormatError(message, path) from error
    if not isinstance(loaded, dict) or not isinstance(loaded.get("tree"), dict):
        message = f"{path}: the last record of this pack holds no tree"
        raise FormatError(message, path)
    _check_version(loaded.get("version"), path)
    tree: Tree = loaded["tree"]
    return tree


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    distinct = dict(pairs)
    if len(distinct) != len(pairs):
        raise ValueError("two entries of a folder have one name")
    return distinct


def _depth(text: bytes) -> int:
    """Return how deep JSON is nested, without going down into it."""
    unescaped = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_strings = b"".join(unescaped.split(b'"')[::2])
    brackets = np.frombuffer(outside_strings.translate(None, _NO_BRACKETS), np.uint8)
    steps = np.where(np.isin(brackets, list(b"{[")), 1, -1)
    return int(steps.cumsum().max(initial=0))


def _too_deep(path: str) -> FormatError:
    message = f"{path}: the tree of this pack is deeper than {DEPTH_MAX} folders"
    return FormatError(message, path)


def _check(tree: Tree, num_records: int, path: str) -> int:
    """Return the number of files, if every name is one and every record exists."""
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
            message = f"{path}: two names in a folder of this pack are one name on a disk"
            raise FormatError(message, path)
        for name, entry in folder.items():
            if isinstance(entry, dict):
                folders.append((entry, depth + 1, length + len(name) + 1))
            elif type(entry) is int and 0 <= entry < num_records:
                num_files += 1
            else:
                message = (
                    f"{path}: {name!r} in the tree of this pack leads to {entry!r}, expected "
                    f"a folder or one of {num_records} records"
                )
                raise FormatError(message, path)
    return num_files


def _on_disk(name: str) -> bytes | str:
    """Return the bytes of a file's name; of one that no file can have, the name."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return name


def _refuse_name(folder: Tree, path: str) -> None:
    for name in folder:
        if name in _RESERVED or "/" in name or "\0" in name:
            message = f"{path}: {name!r} in the tree of this pack is not the name of a file"
            raise FormatError(message, path)
