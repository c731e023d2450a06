"""The images in a directory."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ingot.errors import FormatError
from ingot.formats.table import SUFFIXES

METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
"""The files that say more about the images, as Hugging Face has them."""

TYPES = {".jpg": "jpg", ".jpeg": "jpg", ".png": "png", ".webp": "webp"}
"""The type of an image by its suffix."""

_OTHERS = (".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff")
_IMAGES = (*TYPES, *_OTHERS)
_SPLITS = {"dev", "eval", "test", "train", "training", "val", "valid", "validation"}
_LOOKED = 1000


class Listing(NamedTuple):
    """What is below a directory; names are relative to it, with slashes.

    Attributes:
        images: The images, in the order of torchvision: by first directory, by directory, by name.
        folders: The directories of the first level, sorted.
    """

    images: list[str]
    folders: list[str]


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__"))


def _is_image(name: str) -> bool:
    return name.lower().endswith(_IMAGES)


def is_images(folder: Path) -> bool:
    """Return whether a directory holds images, and no record files beside them.

    A table of metadata makes one of it without looking for images, unless it is Parquet: many
    directories of Parquet files have one of this name.
    """
    if not folder.is_dir():
        return False
    with os.scandir(folder) as entries:
        names = {entry.name.lower() for entry in entries if entry.is_file()}
    if any(name.endswith(SUFFIXES) and name not in METADATA for name in names):
        return False
    if not names.isdisjoint(METADATA[:2]):
        return True
    looked = 0
    for _, files in _walk(folder):
        if any(map(_is_image, files)):
            return True
        looked += len(files)
        if looked > _LOOKED:
            break
    return False


def splits_of(folders: Iterable[str]) -> list[str]:
    """Return the directories, if all are parts of a data set, such as train and test."""
    found = list(folders)
    return found if all(name.lower() in _SPLITS for name in found) else []


def listing_of(folder: Path) -> Listing:
    """List the images in a directory and below it.

    Raises:
        FormatError: A name is not UTF-8.
    """
    folders: set[str] = set()
    found: list[tuple[str, str, list[str]]] = []
    for place, files in _walk(folder):
        first = place.partition("/")[0]
        if first:
            folders.add(first)
        found.append((first, place, [name for name in files if _is_image(name)]))
    names = [
        f"{place}/{name}" if place else name for _, place, files in sorted(found) for name in files
    ]
    for name in (*names, *folders):
        if not name.isascii() and not _is_text(name):
            message = f"{folder}: the name {os.fsencode(name)!r} is not UTF-8; rename it"
            raise FormatError(message, str(folder))
    return Listing(names, sorted(folders))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _walk(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each directory below one, relative to it, and the names of its files, sorted.

    Links are followed. Below each directory of the first level, every directory is read once,
    however many links lead to it.
    """
    seen = {("", *_identity(folder))}
    waiting = [""]
    while waiting:
        place = waiting.pop()
        with os.scandir(folder / place) as entries:
            found = sorted((one.name, one) for one in entries if not _is_hidden(one.name))
        yield place, [name for name, one in found if one.is_file()]
        for name, one in reversed(found):
            if not one.is_dir():
                continue
            below = f"{place}/{name}" if place else name
            identity = _identity(folder / below)
            key = (below.partition("/")[0], *identity)
            if ("", *identity) not in seen and key not in seen:
                seen.add(key)
                waiting.append(below)


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def type_of(names: Iterable[str]) -> str:
    """Return the type of images: bytes, if they are not all of one."""
    found = {TYPES.get(os.path.splitext(name)[1].lower(), "bytes") for name in names}  # noqa: PTH122
    return found.pop() if len(found) == 1 else "bytes"
