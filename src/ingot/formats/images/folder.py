"""The images in a directory, and their classes by the directories that they are in."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ingot.errors import FormatError
from ingot.formats.base.options import Labels, listed
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
        if name.encode(errors="replace").decode() != name:
            message = f"{folder}: the name {os.fsencode(name)!r} is not UTF-8; rename it"
            raise FormatError(message, str(folder))
    return Listing(names, sorted(folders))


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
            found = sorted(
                (one.name, one) for one in entries if not one.name.startswith((".", "__"))
            )
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


@dataclass(frozen=True, slots=True)
class Classes:
    """The images that are rows, and their classes.

    Attributes:
        images: The images, relative to the directory.
        names: The names of the classes; None if images have none.
        labels: The class of each image.
    """

    images: list[str]
    names: list[str] | None
    labels: npt.NDArray[np.int64]


def classes_of(folder: Path, listing: Listing, labels: Labels) -> Classes:
    """Return the images of a directory and their classes.

    Raises:
        FormatError: The directories do not fit the choice; the error says how.
    """
    images = listing.images
    is_flat = all("/" not in name for name in images)
    if labels.by == "none" or (is_flat and not labels.is_given):
        return Classes(images, None, np.empty(0, np.int64))
    if not labels.is_given:
        _check_plain(folder, listing)
    by = "folder" if labels.by == "auto" else labels.by
    if by == "folder":
        images = [name for name in images if "/" in name]
        if not images:
            message = f"{folder}: no images in subdirectories, so there are no classes"
            raise FormatError(message, str(folder))
    of_images = [_class_of(name, by, folder) for name in images]
    if labels.classes is not None:
        names = list(labels.classes)
        if others := sorted(set(of_images) - set(names)):
            message = (
                f"{folder}: there are images in {listed(others)}, which classes= does not list; "
                f"expected {listed(names)}"
            )
            raise FormatError(message, str(folder))
    else:
        names = listing.folders if by == "folder" else sorted(set(of_images))
        _check_full(folder, of_images, names)
    numbers = {name: k for k, name in enumerate(names)}
    return Classes(images, names, np.array([numbers[name] for name in of_images], np.int64))


def _class_of(name: str, by: str, folder: Path) -> str:
    if by == "parent":
        return PurePosixPath(name).parent.name or folder.name
    return name.partition("/")[0] if by == "folder" else name.rpartition("/")[0] or "."


def _check_plain(folder: Path, listing: Listing) -> None:
    """Refuse a directory that may be meant in several ways."""
    splits = listing.folders
    if all(name.lower() in _SPLITS for name in splits):
        names = ", ".join(map(repr, splits))
        message = (
            f"{folder}: this directory has the splits {names}; open one of them: "
            f"ingot.open({str(folder / splits[0])!r}), or pass labels='folder' if they are classes"
        )
        raise FormatError(message, str(folder))
    beside = next((name for name in listing.images if "/" not in name), None)
    if beside is not None:
        message = (
            f"{folder}: the image {beside!r} is in no directory, but others are in "
            f"{listed(listing.folders)}; pass labels='folder' to leave such images out, or "
            "labels=None to read all images without classes"
        )
        raise FormatError(message, str(folder))


def _check_full(folder: Path, of_images: Sequence[str], names: Sequence[str]) -> None:
    """Refuse classes without images: in another part of the data set they may have some."""
    there = set(of_images)
    empty = [name for name in names if name not in there]
    if empty:
        message = (
            f"{folder}: no images in {listed(empty)}, expected some in every directory, which is a "
            f"class; pass classes={listed(names)} to have classes without images, or remove "
            "the directory"
        )
        raise FormatError(message, str(folder))
