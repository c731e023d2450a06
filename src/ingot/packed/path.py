"""Paths of files and folders in a pack."""

import io
from collections.abc import Iterator
from functools import total_ordering
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from ingot.packed.folder import PackedFolder


@total_ordering
class PackedPath:
    """The path of a file or a folder in a pack, like a read-only `pathlib.Path`.

    Get one with `folder / "images" / "1.png"` or `folder.path("images/1.png")`. The path need
    not exist. Members work as in `pathlib.Path`. The root is `.`. A path that is absolute or
    contains `..` never exists. Paths are equal if they are the same path in the same file.

    A `PackedPath` is not an `os.PathLike`, as only its pack can open it.

    Attributes:
        folder: The pack.
    """

    __module__ = "ingot"

    def __init__(self, folder: "PackedFolder", path: PurePosixPath) -> None:
        self.folder = folder
        self._pure = path

    @property
    def parts(self) -> tuple[str, ...]:
        """The components of the path."""
        return self._pure.parts

    @property
    def name(self) -> str:
        """The last component of the path."""
        return self._pure.name

    @property
    def stem(self) -> str:
        """The last component without its suffix."""
        return self._pure.stem

    @property
    def suffix(self) -> str:
        """The suffix of the last component, such as `.png`."""
        return self._pure.suffix

    @property
    def parent(self) -> "PackedPath":
        """The folder that contains it; the root is its own parent."""
        return PackedPath(self.folder, self._pure.parent)

    def joinpath(self, *others: str | PurePath) -> "PackedPath":
        """Return this path joined with `others`."""
        return PackedPath(self.folder, self._pure.joinpath(*others))

    def __truediv__(self, other: str | PurePath) -> "PackedPath":
        if not isinstance(other, str | PurePath):
            return NotImplemented
        return self.joinpath(other)

    def with_name(self, name: str) -> "PackedPath":
        """Return the path with another last component."""
        return PackedPath(self.folder, self._pure.with_name(name))

    def with_suffix(self, suffix: str) -> "PackedPath":
        """Return the path with another suffix: from an image to its label, for example."""
        return PackedPath(self.folder, self._pure.with_suffix(suffix))

    def exists(self) -> bool:
        """Return whether there is a file or a folder at this path."""
        return self.folder.exists(self)

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return self.folder.is_file(self)

    def is_dir(self) -> bool:
        """Return whether it is a folder."""
        return self.folder.is_dir(self)

    def iterdir(self) -> Iterator["PackedPath"]:
        """Iterate over the entries of this folder.

        Raises:
            FileNotFoundError: There is no such folder.
            NotADirectoryError: It is a file.
        """
        return (self / name for name in self.folder.list(self))

    def glob(self, pattern: str) -> Iterator["PackedPath"]:
        """Iterate over the paths here that match a pattern; see `PackedFolder.glob`."""
        return (self / path for path in self.folder.glob(pattern, self))

    def rglob(self, pattern: str) -> Iterator["PackedPath"]:
        """Iterate over the paths here and in any subfolder that match a pattern."""
        return self.glob(pattern if pattern.startswith("/") else f"**/{pattern}")

    @overload
    def open(
        self,
        mode: Literal["r", "rt"] = "r",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> io.TextIOWrapper: ...
    @overload
    def open(self, mode: Literal["rb"]) -> io.BufferedReader: ...
    def open(
        self,
        mode: Literal["r", "rt", "rb"] = "r",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> io.TextIOWrapper | io.BufferedReader:
        """Open the file, as text unless `mode` is "rb"; see `PackedFolder.open`."""
        return self.folder.open(self, mode, encoding=encoding, errors=errors, newline=newline)

    def read_bytes(self) -> bytes:
        """Return the content of the file; `PackedFolder.read` reads several at once."""
        return self.folder.read_one(self)

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """Return the content of the file as text; UTF-8 by default."""
        with self.open("r", encoding=encoding, errors=errors) as stream:
            return stream.read()

    def __str__(self) -> str:
        return str(self._pure)

    def __repr__(self) -> str:
        return f"<ingot.PackedPath {str(self)!r} of {self.folder.reader.path!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PackedPath):
            return NotImplemented
        return self._key() == other._key()

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, PackedPath):
            return NotImplemented
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, tuple[str, ...]]:
        return self.folder.reader.path, self.parts
