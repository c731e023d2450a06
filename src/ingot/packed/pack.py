"""A folder of files made into a pack."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NoReturn

from ingot.packed import tree
from ingot.packed.tree import Tree
from ingot.records import Writer
from ingot.records.paths import StrPath, absolute, check_target
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

    Records are the contents of the files, depth first and by name, and behind them the
    tree of names. Empty folders are kept; modes, times and owners are not. A link is
    followed: what it leads to is packed. One file at a time is in memory.

    Args:
        folder: The folder to pack.
        target: The file to write, outside of `folder`.
        compression: As for `Writer`.
        metadata: A JSON-able dict that is stored in the file, beside what marks it as a pack.
        overwrite: Take the place of an existing file once the new one is whole.
        progress: Called with the files done and their total after each file; True writes
            a line to standard error.

    Raises:
        FormatError: `target` ends as files of another container do, `.ffr` say.
        FileExistsError: `target` exists and `overwrite` is not given.
        ValueError: There is something that is neither a file nor a folder, a link leads
            back to a folder it lies in, or folders lie too deep in one another.
        OSError: A file cannot be read. No target is left.
    """
    check_target(target)
    target, source = absolute(target), absolute(folder)
    if not overwrite and os.path.lexists(target):
        note = "file exists; pass overwrite=True to replace it"
        raise FileExistsError(errno.EEXIST, note, os.fspath(target))
    if target.resolve().is_relative_to(source.resolve()):
        message = f"{os.fspath(target)}: the target lies in the folder that is to be packed"
        raise ValueError(message)
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
    """Return the tree of `folder`, and put its files behind those in `paths`."""
    status = Path(folder).stat()
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        message = f"{folder}: this link leads back to a folder that it lies in"
        raise ValueError(message)
    if len(above) > tree.DEPTH_MAX:
        message = f"{folder}: a pack holds at most {tree.DEPTH_MAX} folders in one another"
        raise ValueError(message)
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
    kind = _KINDS.get(stat.S_IFMT(entry.stat().st_mode), "no file")
    message = f"{entry.path}: this is {kind}; only files and folders can be packed"
    raise ValueError(message)


def _contents(paths: list[str], progress: Progress) -> Iterator[bytes]:
    report = reporter(progress, "packed", "files")
    for done, path in enumerate(paths, 1):
        yield Path(path).read_bytes()
        if report is not None:
            report(done, len(paths))
