"""The files that a path, pattern or directory refers to."""

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from ingot.errors import FormatError, storage_errors
from ingot.formats.table import OPENED, SUFFIXES, format_of, plain_name
from ingot.records.braces import braces

StrPath: TypeAlias = str | os.PathLike[str]

_FILE = "file://"
_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_MEDIA = (".jpg", ".jpeg", ".png", ".webp", ".wav", ".flac", ".mp4", ".txt", ".npy")
_SHARDS = re.compile(r"(.*)@([0-9]{1,9}|\*)(\.[^@/]+)", re.DOTALL)
_SHARDS_MAX = 100_000


def check_target(path: StrPath) -> None:
    """Refuse the path of a new file if its suffix is that of another format, by a FormatError."""
    name = text_of(path)
    if _URL.match(name):
        message = f"{name}: Ingot writes local files; write to a local disk, then copy the file"
        raise FormatError(message, name)
    if not name:
        raise FileNotFoundError("the path is empty")
    other = format_of(name)
    if other is not None and other.name != "ingot":
        message = (
            f"{name}: other programs would take an Ingot file for {other.title}; name it .ingot"
        )
        if other.writer is not None:
            message += f", or write {other.title} with {other.writer}"
        raise FormatError(message, name)


def list_files(source: StrPath | Sequence[StrPath]) -> list[str]:
    """Return the absolute paths of the record files that `source` refers to, in order.

    These are the files that `ingot.open` reads as records, for example to give each of several
    programs its part of them. A plain path need not exist.

    Args:
        source: A file, a directory (its record files, sorted by name), a pattern such as
            `train-*.ingot` or `train-{000..127}.tar`, shards such as `train@8.bagz`, or several
            of these.

    Raises:
        FormatError: A directory holds no record files, or files of several formats, or braces
            expand to too many files.
        FileNotFoundError: No file matches a pattern.
        StorageError: A name is too long, or links lead to each other.
        TypeError: It is neither a path nor a list of paths.
    """
    with storage_errors():
        return [path for one in named(source) for path in _expand_one(one)]


def named(source: StrPath | Sequence[StrPath]) -> list[str]:
    """Return the paths that `source` names: with braces expanded, but not yet their files.

    Raises:
        FormatError: Braces expand to too many files.
        TypeError: It is neither a path nor a list of paths.
    """
    return [path for one in _listed(source) for path in braces(text_of(one))]


def text_of(path: object) -> str:
    """Return a path as text; of a `file:` URL, the path that it has.

    Raises:
        FormatError: The URL names another host.
        TypeError: It is not a path, or a path of bytes.
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"a path must be a str or an os.PathLike of one, got {type(text).__name__}")
    if not text.lower().startswith(_FILE):
        return text
    host, slash, rest = text[len(_FILE) :].partition("/")
    if host.lower() not in ("", "localhost") or not slash:
        raise FormatError(f"{text}: expected file:///PATH, or file://localhost/PATH", text)
    return unquote(slash + rest)


def name_of(source: StrPath | Sequence[StrPath], paths: Sequence[str]) -> str:
    """Return what errors call files that were opened together.

    Args:
        source: What was opened: its absolute path or pattern is the name.
        paths: The files; the first of them is the name of a list.
    """
    is_one = isinstance(source, str | os.PathLike)
    return str(absolute(source)) if is_one else paths[0]


def shown(path: str, paths: Sequence[str]) -> str:
    """Return in words what was opened: the repr of its name, and how many files a list has."""
    others = len(paths) - 1 if paths and path == paths[0] else 0
    return f"{path!r} and {others:,} more" if others else repr(path)


def short_name(path: str, paths: Sequence[str]) -> str:
    """Return the same without the directories above; for a pattern, with one of them."""
    is_pattern = glob.has_magic(path) or "{" in path
    name = str(Path(*Path(path).parts[-2:])) if is_pattern else Path(path).name
    others = len(paths) - 1 if paths and path == paths[0] else 0
    return f"{name} and {others:,} more" if others else name


def absolute(path: object) -> Path:
    """Return the absolute path of a file; a leading `~` is the home directory.

    Raises:
        TypeError: It is not a path, or a path of bytes.
    """
    text = text_of(path)
    if _URL.match(text):
        message = f"{text}: Ingot reads and writes local files; copy it from or to a disk"
        raise FormatError(message, text)
    return Path(os.path.expanduser(text)).absolute()  # noqa: PTH111 -- no user is no error


def _listed(source: object) -> Iterable[object]:
    if isinstance(source, str | os.PathLike):
        return [source]
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise TypeError(f"expected a path or a list of paths, got {type(source).__name__}")
    return source


def _expand_one(path: str) -> list[str]:
    if not path:
        message = "the path is empty"
        raise FileNotFoundError(message)
    if _URL.match(path):
        message = f"{path}: Ingot reads local files; copy the file to a local disk first"
        raise FormatError(message, path)
    whole = str(absolute(path))
    if Path(whole).is_dir():
        return _record_files(whole)
    if found := shards(whole):
        return found
    if glob.has_magic(path) and not Path(whole).exists():
        found = sorted(glob.glob(whole, recursive=True))  # noqa: PTH207 -- the pattern is a whole path
        if not found:
            raise FileNotFoundError(f"{path}: no file matches this pattern")
        return [path for path in found if not _is_limits(path)]
    return [whole]


def shards(path: str) -> list[str]:
    """Return the files that `x@8.bagz` or `x@*.bagz` refers to; none for any other path.

    They are `x-00000-of-00008.bagz` and so on. If the first of them does not exist, the path
    refers to a file of that very name.
    """
    found = _SHARDS.fullmatch(path)
    if found is None:
        return []
    stem, count, suffix = found.groups()
    if count == "*":
        first = glob.escape(f"{stem}-00000-of-") + "[0-9]" * 5 + glob.escape(suffix)
        firsts = sorted(glob.glob(first))  # noqa: PTH207 -- the pattern is a whole path
        count = firsts[-1].removesuffix(suffix)[-5:] if firsts else "0"
    total = int(count)
    if not 0 < total < _SHARDS_MAX:
        return []
    files = [f"{stem}-{k:05}-of-{total:05}{suffix}" for k in range(total)]
    return [] if Path(path).exists() and not Path(files[0]).exists() else files


def check_regular(path: str) -> None:
    """Refuse what is neither a file nor a directory, such as a pipe: reading it may never end.

    Raises:
        FormatError: It is one.
    """
    one = Path(path)
    if one.exists() and not one.is_file() and not one.is_dir():
        raise FormatError(f"{path}: this is not a regular file", path)


def check_link(path: str) -> None:
    """Refuse a link in a directory that leads to a file of another kind, and so discloses it.

    Raises:
        FormatError: It is one.
    """
    if Path(path).is_symlink() and Path(path).resolve().suffix != Path(path).suffix:
        suffix = Path(path).suffix
        message = f"{path}: links to {Path(path).resolve()}, expected a {suffix} file"
        raise FormatError(message, path)


def _is_limits(path: str) -> bool:
    """Return whether a file holds the limits of the bag beside it: `limits.x.bag` of `x.bag`."""
    one = Path(path)
    bag = one.name.removeprefix("limits.")
    return bag.endswith((".bag", ".bagz")) and bag != one.name and one.with_name(bag).exists()


def _record_files(folder: str) -> list[str]:
    if (Path(folder) / "spec.json").exists():
        message = f"{folder}: this is a Granular data set: each of its files is a column"
        raise FormatError(message, folder)
    found = [
        entry.path
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
        if plain_name(entry.name).lower().endswith(SUFFIXES)
        and not _is_limits(entry.path)
        and entry.is_file()
    ]
    for path in found:
        check_link(path)
    suffixes = {Path(plain_name(path)).suffix.lower() for path in found}
    if len(suffixes) == 1:
        return found
    with os.scandir(folder) as entries:
        some = next((one.name for one in entries if one.name.lower().endswith(_MEDIA)), None)
    if not found and some is not None:
        message = (
            f"{folder}: this directory holds files such as {some}, but no records; "
            "ingot.build makes a data set from them, ingot.pack one file"
        )
        raise FormatError(message, folder)
    listed = " and ".join(sorted(suffixes)) or "no record"
    message = f"{folder}: this directory holds {listed} files, expected files of one format"
    raise FormatError(message if found else f"{message}; {OPENED}", folder)
