"""A pack, open for reading."""

import errno
import io
import os
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from pathlib import PurePath, PurePosixPath
from typing import Literal, TypeAlias, overload

from ingot.errors import CorruptFileError, StorageError, counted
from ingot.packed import tree
from ingot.packed.path import PackedPath
from ingot.packed.pattern import Pattern
from ingot.packed.tree import Tree
from ingot.packed.unpack import unpack
from ingot.records import Reader, Verification
from ingot.records.exit import Closable
from ingot.records.expand import StrPath, absolute
from ingot.records.progress import Progress

AnyPath: TypeAlias = str | os.PathLike[str] | PackedPath

# The class has a method of the same name.
_Contents: TypeAlias = list[bytes]
_Paths: TypeAlias = list[str]
_Sizes: TypeAlias = list[int]


class PackedFolder(Closable, Mapping[str, bytes]):
    """A packed folder, open for reading: a mapping of paths to the contents of files.

    Opens files that `ingot.pack` wrote, and packs of FFRecord (`.ffr`). A path is a string,
    an `os.PathLike` or a `PackedPath`. It is relative to the root, which is `""` or `.`, with
    `/` as the separator. A path that is absolute, contains `..` or leads through a file does
    not exist.

    The mapping contains the files: `folder[path]` raises KeyError if there is no such file,
    iteration yields the paths in the order of the pack, and `items()` and `values()` read
    ahead. `list`, `walk` and similar methods also show folders.

    Several threads and forked processes may use a pack at the same time. Pickling stores
    its path.

    Args:
        source: The file.

    Raises:
        FileNotFoundError: There is no such file.
        FormatError: It is not a packed folder, or its tree is damaged.
    """

    __module__ = "ingot"
    __hash__ = object.__hash__

    def __init__(self, source: StrPath) -> None:
        if absolute(source).is_dir():
            raise IsADirectoryError(errno.EISDIR, "a pack must be a file", os.fspath(source))
        self._reader = Reader(source)
        try:
            self._tree, self._num_files = tree.read(self._reader)
        except BaseException:
            self._reader.close()
            raise

    @property
    def reader(self) -> Reader:
        """The record file: its path, metadata and figures."""
        return self._reader

    @property
    def num_files(self) -> int:
        """The number of files in all folders."""
        return self._num_files

    def read_one(self, path: AnyPath) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: There is no such file.
            IsADirectoryError: It is a folder.
            CorruptFileError: It is damaged.
        """
        return self._reader[self._row(path)]

    def read(self, paths: Iterable[AnyPath]) -> _Contents:
        """Return the contents of several files, in one native read.

        Raises:
            FileNotFoundError: A file does not exist. Nothing was read.
            IsADirectoryError: A path is a folder. Nothing was read.
            CorruptFileError: A file is damaged; a note names it.
        """
        wanted = _several(paths)
        rows = [self._row(path) for path in wanted]
        try:
            return self._reader[rows]
        except (CorruptFileError, StorageError) as error:
            if error.record in rows:
                path = wanted[rows.index(error.record)]
                error.add_note(f"record {error.record} is the file {str(path)!r} of this pack")
            raise

    def size(self, path: AnyPath) -> int:
        """Return the size of a file in bytes, from the index alone.

        Raises:
            FileNotFoundError: There is no such file.
            IsADirectoryError: It is a folder.
        """
        return self.sizes([path])[0]

    def sizes(self, paths: Iterable[AnyPath]) -> _Sizes:
        """Return the size of each of several files; see `size`."""
        rows = [self._row(path) for path in _several(paths)]
        sizes: _Sizes = self._reader.lengths(rows).tolist()
        return sizes

    def list(
        self,
        path: AnyPath = "",
        *,
        files: bool = True,
        folders: bool = True,
        recursive: bool = False,
    ) -> _Paths:
        """List a folder, in the order of the pack.

        Args:
            path: The folder.
            files: Whether to list files.
            folders: Whether to list folders.
            recursive: Whether to list subfolders too, each followed by its contents.

        Returns:
            Paths relative to `path`.

        Raises:
            FileNotFoundError: There is no such folder.
            NotADirectoryError: It is a file.
        """
        top = self._folder(path)
        found = tree.entries(top) if recursive else top.items()
        return [name for name, entry in found if (folders if isinstance(entry, dict) else files)]

    def walk(self, top: AnyPath = "") -> Iterator[tuple[str, _Paths, _Paths]]:
        """Walk through folders from the top down, as `os.walk` does.

        Yields:
            The path of a folder, the names of its folders, and the names of its files. Remove
            names of folders to skip these folders.

        Raises:
            FileNotFoundError: There is no folder `top`.
            NotADirectoryError: It is a file.
        """
        first = "/".join(self._parts(top))
        to_go = [(first, self._folder(top))]
        while to_go:
            path, folder = to_go.pop()
            folders = [name for name, entry in folder.items() if isinstance(entry, dict)]
            yield path, folders, [name for name in folder if isinstance(folder[name], int)]
            for name in reversed(folders):
                entry = folder.get(name)
                if isinstance(entry, dict):
                    to_go.append((f"{path}/{name}" if path else name, entry))

    def glob(self, pattern: str, path: AnyPath = "") -> Iterator[str]:
        """Iterate over the paths that match a pattern such as `*/*.png` or `**/*.png`.

        Patterns work as in `pathlib`: `**` matches any number of folders, and at the end of a
        pattern everything below (as of Python 3.13); a pattern that ends in `/` matches only
        folders. If `path` is not a folder, nothing matches.

        Args:
            pattern: The pattern.
            path: The folder to start at.

        Returns:
            Paths relative to `path`, in the order of the pack; `""` is `path` itself.

        Raises:
            ValueError: The pattern is empty.
            NotImplementedError: The pattern is absolute.
        """
        parsed = Pattern(pattern)
        entry = self._find(path)
        return parsed.select(entry) if isinstance(entry, dict) else iter(())

    def exists(self, path: AnyPath) -> bool:
        """Return whether there is a file or a folder at `path`."""
        return self._find(path) is not None

    def is_file(self, path: AnyPath) -> bool:
        """Return whether there is a file at `path`."""
        return isinstance(self._find(path), int)

    def is_dir(self, path: AnyPath) -> bool:
        """Return whether there is a folder at `path`."""
        return isinstance(self._find(path), dict)

    def path(self, *parts: str | PurePath) -> PackedPath:
        """Return a path made of `parts`, which need not exist; `folder / part` does the same."""
        return PackedPath(self, PurePosixPath(*parts))

    def __truediv__(self, part: str | PurePath) -> PackedPath:
        return self.path() / part

    @overload
    def open(self, path: AnyPath, mode: Literal["rb"] = "rb") -> io.BufferedReader: ...
    @overload
    def open(
        self,
        path: AnyPath,
        mode: Literal["r", "rt"],
        encoding: str | None = None,
        *,
        errors: str | None = None,
        newline: str | None = None,
    ) -> io.TextIOWrapper: ...
    @overload
    def open(
        self,
        path: AnyPath,
        mode: Literal["rb", "r", "rt"],
        encoding: str | None = None,
        *,
        errors: str | None = None,
        newline: str | None = None,
    ) -> io.BufferedReader | io.TextIOWrapper: ...
    def open(
        self,
        path: AnyPath,
        mode: Literal["rb", "r", "rt"] = "rb",
        encoding: str | None = None,
        *,
        errors: str | None = None,
        newline: str | None = None,
    ) -> io.BufferedReader | io.TextIOWrapper:
        """Open a file for reading. It is read completely at once.

        Args:
            path: The file.
            mode: "rb" for bytes, "r" or "rt" for text.
            encoding: The encoding of text; UTF-8 by default, whatever the locale.
            errors: How to handle decoding errors, as for the builtin `open`.
            newline: How to handle line ends, as for the builtin `open`.

        Raises:
            FileNotFoundError: There is no such file.
            IsADirectoryError: It is a folder.
            ValueError: `mode` is unknown, or `encoding` is given for bytes.
        """
        if mode not in {"rb", "r", "rt"}:
            raise ValueError(f'mode must be "rb", "r" or "rt", got {mode!r}: a pack is read-only')
        if mode == "rb" and not (encoding is errors is newline is None):
            raise ValueError('mode "rb" takes no encoding, errors or newline')
        stream: io.BufferedReader = io.BufferedReader(io.BytesIO(self.read_one(path)))
        if mode == "rb":
            return stream
        return io.TextIOWrapper(stream, encoding or "utf-8", errors, newline)

    def unpack(
        self, target: StrPath, *, overwrite: bool = False, progress: Progress = None
    ) -> None:
        """Write all files and folders to `target`, as they were packed.

        Nothing is written outside `target`, whatever names the pack contains and whatever links
        are in `target`: a link in the place of a folder is an error, and a link in the place of a
        file is replaced, never followed. At most 64 MB of contents are in memory at a time, or
        one file if it is larger.

        Args:
            target: The folder; it is created if it is missing.
            overwrite: Also write into a folder that is not empty, and replace its files.
            progress: Called with the number of files done and their total after each file;
                True prints a progress line to standard error.

        Raises:
            FileExistsError: `target` is not empty and `overwrite` is not given.
            NotADirectoryError: Something other than a folder is in the place of a folder.
            FormatError: A name is not a valid file name on this system. Nothing was written.
            CorruptFileError: A file is damaged. Some of the others were written.
        """
        unpack(self._reader, self._tree, target, overwrite=overwrite, progress=progress)

    def verify(self, progress: Progress = None) -> Verification:
        """Read the whole pack and verify every checksum in it; see `Reader.verify`.

        Record `k` is the `k`-th file of the pack, and the last record is the tree of names.
        """
        return self._reader.verify(progress)

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._reader.close()

    def __getitem__(self, path: AnyPath) -> bytes:
        row = self._find(path)
        if not isinstance(row, int):
            raise KeyError(str(path))
        return self._reader[row]

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike | PackedPath) and self.is_file(path)

    def __iter__(self) -> Iterator[str]:
        return (path for path, entry in tree.entries(self._tree) if isinstance(entry, int))

    def __len__(self) -> int:
        return self._num_files

    def __eq__(self, other: object) -> bool:
        return self is other

    def items(self) -> ItemsView[str, bytes]:
        """Return a view of the paths and contents; iterating over it reads ahead."""
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """Return a view of the contents; iterating over it reads ahead."""
        return _Values(self, self._tree)

    def _parts(self, path: AnyPath) -> Sequence[str]:
        if not isinstance(path, PackedPath):
            return tree.parts_of(path)
        if path.folder is not self and path.folder.reader.path != self._reader.path:
            raise ValueError(f"{path!r} belongs to another pack, not to {self._reader.path!r}")
        return path.parts

    def _find(self, path: AnyPath) -> "int | Tree | None":
        return tree.find(self._tree, self._parts(path))

    def _row(self, path: AnyPath) -> int:
        entry = self._find(path)
        if isinstance(entry, int):
            return entry
        if entry is None:
            raise self._missing(path)
        note = f"a folder, not a file, in {self._reader.path}"
        raise IsADirectoryError(errno.EISDIR, note, str(path))

    def _folder(self, path: AnyPath) -> Tree:
        entry = self._find(path)
        if isinstance(entry, dict):
            return entry
        if entry is None:
            raise self._missing(path)
        note = f"a file, not a folder, in {self._reader.path}"
        raise NotADirectoryError(errno.ENOTDIR, note, str(path))

    def _missing(self, path: AnyPath) -> FileNotFoundError:
        note = f"no such file or folder in {self._reader.path}"
        return FileNotFoundError(errno.ENOENT, note, str(path))

    def __getstate__(self) -> Reader:
        return self._reader

    def __setstate__(self, reader: Reader) -> None:
        self._reader = reader
        self._tree, self._num_files = tree.read(reader)

    def __repr__(self) -> str:
        state = "closed" if self._reader.closed else f"{counted(len(self), 'file')}"
        return f"<ingot.PackedFolder {self._reader.path!r}, {state}>"


class _Values(ValuesView[bytes]):
    def __init__(self, folder: PackedFolder, names: Tree) -> None:
        super().__init__(folder)
        self._reader, self._names = folder.reader, names

    def __iter__(self) -> Iterator[bytes]:
        return self._reader.iter(tree.rows(self._names))


class _Items(ItemsView[str, bytes]):
    def __init__(self, folder: PackedFolder) -> None:
        super().__init__(folder)
        self._folder = folder

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        return zip(self._folder, self._folder.values(), strict=True)


def _several(paths: Iterable[AnyPath]) -> list[AnyPath]:
    if isinstance(paths, str | os.PathLike | PackedPath):
        raise TypeError(f"expected several paths, got a single one: {str(paths)!r}")
    return list(paths)
