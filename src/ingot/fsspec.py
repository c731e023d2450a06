"""A pack as an `fsspec` file system: `fsspec.filesystem("ingotpack", source="x.ingot")`.

pandas, pyarrow, dask, zarr and others can read through it. It requires the extra `fsspec`.
"""

import errno
import inspect
import io
import os
from typing import Any

from ingot.errors import FormatError
from ingot.extras import requirement
from ingot.packed import PackedFolder
from ingot.records.expand import StrPath

with requirement("fsspec", "ingot.fsspec"):
    from fsspec import AbstractFileSystem

__all__ = ["PackedFileSystem"]


class PackedFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """A pack as a read-only file system.

    The URL of a file in a pack is `ingotpack://path/in/pack::/path/of/pack.ingot`.

    Args:
        source: The pack, as for `PackedFolder`.
        fo: The pack, when it comes from a URL.
        target_protocol: The protocol of `fo`, which must be that of local files.
        target_options: Options of that protocol.
        **options: Options of every `fsspec` file system.

    Attributes:
        folder: The pack.
    """

    protocol = "ingotpack"
    root_marker = ""
    cachable = False  # Another file may replace the pack.

    def __init__(
        self,
        source: StrPath | None = None,
        *,
        fo: StrPath | None = None,
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,  # noqa: ARG002
        **options: Any,
    ) -> None:
        super().__init__(**options)
        pack = fo if source is None else source
        if pack is None:
            raise TypeError("the pack is missing: PackedFileSystem(source)")
        if target_protocol not in {None, "file", "local"}:
            message = f"{os.fspath(pack)}: a pack must be a local file, got {target_protocol!r}"
            raise ValueError(message)
        self.folder = PackedFolder(pack)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        return stripped if isinstance(stripped, list) else stripped.lstrip("/")

    def info(self, path: StrPath, **_: Any) -> dict[str, Any]:
        """Return the name, type and size of a file or a folder."""
        name = self._strip_protocol(path)
        if self.folder.is_dir(name):
            return {"name": name, "size": 0, "type": "directory"}
        return {"name": name, "size": self.folder.size(name), "type": "file"}

    def ls(self, path: StrPath, detail: bool = True, **_: Any) -> list[Any]:
        """List a folder: names, or with `detail` the `info` of each entry."""
        top = self._strip_protocol(path)
        if not self.folder.is_dir(top):
            return [self.info(top) if detail else self.info(top)["name"]]
        prefix = f"{top}/" if top else ""
        names = [prefix + name for name in self.folder.list(top)]
        if not detail:
            return names
        files = [name for name in names if self.folder.is_file(name)]
        sizes = dict(zip(files, self.folder.sizes(files), strict=True))
        return [
            {"name": name, "size": sizes[name], "type": "file"}
            if name in sizes
            else {"name": name, "size": 0, "type": "directory"}
            for name in names
        ]

    def cat_file(
        self, path: StrPath, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """Return the content of a file, or the part of it from `start` to `end`."""
        return self.folder.read_one(self._strip_protocol(path))[start:end]

    def cat(
        self,
        path: StrPath | list[StrPath],
        recursive: bool = False,
        on_error: str = "raise",
        **options: Any,
    ) -> Any:
        """Return the content of a file, or a dict of the contents of several, in one native read.

        Args:
            path: A file, a pattern, or a list of these; with `recursive`, also a folder.
            recursive: Whether to include the files of all subfolders.
            on_error: "raise", "omit" to leave out what cannot be read, or "return" to return
                the exception in its place.
            **options: Options of `cat_file`.
        """
        named = [self._strip_protocol(one) for one in (path if isinstance(path, list) else [path])]
        paths = named
        if recursive or not all(map(self.folder.is_file, named)):
            paths = self.expand_path(named, recursive=recursive)
        if recursive:
            paths = [one for one in paths if not self.folder.is_dir(one)]
        elif not isinstance(path, list) and paths == named:
            return self.cat_file(paths[0], **options)
        part = slice(options.get("start"), options.get("end"))
        try:
            contents = self.folder.read(paths)
        except (FormatError, OSError):
            if on_error == "raise":
                raise
            return self._cat_each(paths, part, keep_errors=on_error == "return")
        return {one: content[part] for one, content in zip(paths, contents, strict=True)}

    def _cat_each(
        self, paths: list[str], part: slice, *, keep_errors: bool
    ) -> dict[str, bytes | Exception]:
        found: dict[str, bytes | Exception] = {}
        for path in paths:
            try:
                found[path] = self.folder.read_one(path)[part]
            except (FormatError, OSError) as error:
                if keep_errors:
                    found[path] = error
        return found

    def _open(self, path: str, mode: str = "rb", **_: Any) -> "_File":
        if mode != "rb":
            raise OSError(errno.EROFS, f"a pack is read-only, got mode {mode!r}", path)
        return _File(self.folder.read_one(path))


class _File(io.BufferedReader):
    """A file of a pack, with the `size` that `fsspec` expects."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))
        self.size = len(content)


# The metaclass of `AbstractFileSystem` takes any arguments, and would be asked first.
PackedFileSystem.__signature__ = inspect.signature(PackedFileSystem.__init__.__get__(object()))
