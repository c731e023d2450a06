"""`ffrecord.package`: folders packed into one file."""

import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from ingot.compat.ffrecord.errors import PathError
from ingot.compat.ffrecord.fileio import FileReader, FileWriter, Sample, StrPath
from ingot.formats.ffrecord import decode_tree

Tree: TypeAlias = OrderedDict[str, Any]

_MAGIC = b"piouhjgbr"


def pack_folder(folder: StrPath, out_file: StrPath, verbose: bool = False) -> None:
    """Pack the files of a folder, at any depth, into one `.ffr` file.

    Links are followed. Modes, times and owners are not kept.

    Raises:
        AssertionError: `folder` is not a folder.
    """
    root = Path(folder)
    if not root.is_dir():
        message = f"{folder} is not a folder"
        raise PathError(message, str(folder))
    files: list[Path] = []
    names = _scan(root, files, seen=frozenset())
    width = len(str(len(files)))
    with FileWriter(out_file, len(files) + 1) as writer:
        for index, file in enumerate(files):
            writer.write_one(file.read_bytes())
            if verbose:
                print(f"{index:0{width}d}/{len(files)} {file.absolute()}")  # noqa: T201
        writer.write_one(_MAGIC + pickle.dumps(names, protocol=4))


def _scan(folder: Path, files: list[Path], seen: frozenset[Path]) -> Tree:
    real = folder.resolve()
    if real in seen:
        message = f"{folder} is a link to a folder that contains it"
        raise PathError(message, str(folder))
    names: Tree = OrderedDict()
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            names[entry.name] = _scan(entry, files, seen | {real})
        elif entry.is_file():
            names[entry.name] = len(files)
            files.append(entry)
        else:
            message = f"{entry} is neither a file nor a folder"
            raise PathError(message, str(entry))
    return names


class PackedFolder:
    """A folder that `pack_folder` packed.

    Args:
        ffr_file: The file.
        check_data: Whether to verify checksums.

    Attributes:
        reader: The reader of the file.
        structure: The tree: names to sample numbers, or to trees.

    Raises:
        ValueError: The file is not a packed folder.
    """

    reader: FileReader
    structure: Tree

    def __init__(self, ffr_file: StrPath | Sequence[StrPath], check_data: bool = True) -> None:
        self.reader = FileReader(ffr_file, check_data)
        last = self.reader.read_one(-1).tobytes() if self.reader.n else b""
        if not last.startswith(_MAGIC):
            message = f"{self.reader.fnames[0]} is not a packed folder"
            raise ValueError(message)
        decoded = decode_tree(last, self.reader.n - 1, self.reader.fnames[-1])
        self.structure = _ordered(decoded)

    def num_files(self) -> int:
        """Return the number of files."""
        return self.reader.n - 1

    def read_one(self, fname: StrPath) -> Sample:
        """Return the bytes of a file.

        Raises:
            AssertionError: There is no such file.
        """
        return self.reader.read_one(self._index(fname))

    def read(self, fnames: Sequence[StrPath]) -> list[Sample]:
        """Return the bytes of several files, in one native read."""
        if not isinstance(fnames, list | tuple):
            message = f"fnames must be a list or a tuple of paths, got {type(fnames).__name__}"
            raise PathError(message, str(fnames))
        return self.reader.read([self._index(fname) for fname in fnames])

    def list(
        self,
        path: StrPath | None = None,
        list_file: bool = True,
        list_dir: bool = True,
        recursive: bool = False,
    ) -> "list[str]":
        """Return the names in a folder, relative to it; with `recursive` at any depth."""
        node = self._find(path or "")
        if not isinstance(node, dict):
            message = f"{path} does not exist" if node is None else f"{path} is not a directory"
            raise PathError(message, str(path))
        return [
            name
            for name, node in (_entries(node) if recursive else node.items())
            if (list_dir if isinstance(node, dict) else list_file)
        ]

    def exists(self, path: StrPath) -> bool:
        """Return whether there is a file or a folder."""
        return self._find(path) is not None

    def is_file(self, path: StrPath) -> bool:
        """Return whether there is a file."""
        return isinstance(self._find(path), int)

    def is_dir(self, path: StrPath) -> bool:
        """Return whether there is a folder."""
        return isinstance(self._find(path), dict)

    def _find(self, path: StrPath) -> int | Tree | None:
        node: int | Tree | None = self.structure
        for part in PurePath(path).parts:
            node = node.get(part) if isinstance(node, OrderedDict) else None
        return node

    def _index(self, fname: StrPath) -> int:
        node = self._find(fname)
        if isinstance(node, int):
            return node
        what = "does not exist" if node is None else "is not a file but a directory"
        message = f"{fname} {what}"
        raise PathError(message, str(fname))


def _entries(folder: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the node of each entry, at any depth, relative to the folder."""
    left = [("", iter(folder.items()))]
    while left:
        above, entries = left[-1]
        for entry, node in entries:
            yield above + entry, node
            if isinstance(node, Mapping):
                left.append((f"{above}{entry}/", iter(node.items())))
                break
        else:
            left.pop()


def _ordered(decoded: dict[str, Any]) -> Tree:
    root: Tree = OrderedDict(decoded)
    left = [root]
    while left:
        folder = left.pop()
        for name, node in folder.items():
            if isinstance(node, dict):
                folder[name] = OrderedDict(node)
                left.append(folder[name])
    return root
