"""Packing a folder of files into one file."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NoReturn

from ingot.packed import tree
from ingot.packed.tree import Tree
from ingot.records import Writer
from ingot.records.expand import StrPath, absolute, check_target
from ingot.records.progress import Progress, reporter

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def pack(
    folder: StrPath,
    target: StrPath,
    *,
    compression: Literal["auto", "zstd", "lz4"] | None = "auto",
    metadata: dict[str, Any] | None = None,
    overwrite: bool = False,
    progress: Progress = None,
) -> None:
    """Pack the files under `folder` into one record file, which `PackedFolder` opens.

    The records are the contents of the files, depth first and sorted by name, followed by the
    tree of names. Empty folders are kept; modes, times and owners are not. Links are followed:
    the files they point to are packed. One file at a time is in memory.

    Args:
        folder: The folder to pack.
        target: The file to write, outside of `folder`.
        compression: As for `Writer`.
        metadata: A dict of JSON values that is stored in the file, beside the mark of a pack.
        overwrite: Replace an existing file once the new one is finished.
        progress: Called with the number of files done and their total after each file; True
            prints a progress line to standard error.

    Raises:
        FormatError: `target` has the suffix of another file format, such as `.ffr`.
        FileExistsError: `target` exists and `overwrite` is not given.
        ValueError: Something is neither a file nor a folder, a link leads back to a folder that
            contains it, or folders are nested too deeply.
        OSError: A file cannot be read. No target is left.
    """
    check_target(target)
    target, source = absolute(target), absolute(folder)
    if not overwrite and os.path.lexists(target):
        note = "file exists; pass overwrite=True to replace it"
        raise FileExistsError(errno.EEXIST, note, os.fspath(target))
    if target.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"{os.fspath(target)}: the target is inside the folder to pack")
    paths: list[str] = []
    names = _scan(str(source), paths, [])
    marked = {**(metadata or {}), tree.METADATA_KEY: tree.VERSION}
    writer = Writer(target, compression=compression, metadata=marked, overwrite=overwrite)
    try:
        writer.extend(_contents(paths, progress))
        writer.append(tree.encode(names))
        writer.close()
    except BaseException:
        if writer.abandon() and not overwrite:
            Path(writer.path).unlink()
        raise


def _scan(folder: str, paths: list[str], above: list[tuple[int, int]]) -> Tree:
    """Return the tree of `folder`, and append its files to `paths`."""
    status = Path(folder).stat()
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        raise ValueError(f"{folder}: this link leads back to a folder that contains it")
    if len(above) > tree.DEPTH_MAX:
        raise ValueError(f"{folder}: a pack can nest at most {tree.DEPTH_MAX} folders")
    with os.scandir(folder) as found:
        ordered = sorted(found, key=lambda entry: entry.name)
    names: Tree = {}
    for entry in ordered:
        if entry.is_dir():
            names[entry.name] = _scan(entry.path, paths, [*above, identity])
        elif entry.is_file():
            names[entry.name] = len(paths)
            paths.append(entry.path)
        else:
            _refuse(entry)
    return names


def _refuse(entry: os.DirEntry[str]) -> NoReturn:
    kind = _KINDS.get(stat.S_IFMT(entry.stat().st_mode), "not a file")
    raise ValueError(f"{entry.path}: this is {kind}; only files and folders can be packed")


def _contents(paths: list[str], progress: Progress) -> Iterator[bytes]:
    report = reporter(progress, "packed", "files")
    for done, path in enumerate(paths, 1):
        yield Path(path).read_bytes()
        if report is not None:
            report(done, len(paths))
