"""The images in a directory."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ingot.records.formats import SUFFIXES

METADATA = ("metadata.jsonl", "metadata.csv")
"""The files that say more about the images, as Hugging Face has them."""

TYPES = {".jpg": "jpg", ".jpeg": "jpg", ".png": "png", ".webp": "webp"}
"""The type of an image by its suffix."""

_OTHERS = (".bmp", ".gif", ".ppm", ".tif", ".tiff")
_IMAGES = (*TYPES, *_OTHERS)
_SPLITS = {"dev", "eval", "test", "train", "training", "val", "valid", "validation"}
_DEPTH = 8
_LOOKED = 1000


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__"))


def is_images(folder: Path) -> bool:
    """Return whether a directory holds images, and no record files beside them."""
    if not folder.is_dir():
        return False
    with os.scandir(folder) as entries:
        names = [entry.name.lower() for entry in entries if entry.is_file()]
    if any(name.endswith(SUFFIXES) and name not in METADATA for name in names):
        return False
    if any(name in METADATA for name in names):
        return True
    return any(path is not None for path in islice(images(folder), _LOOKED))


def splits_of(folder: Path) -> list[str]:
    """Return the folders of a directory if they are parts of a data set, such as train and test."""
    with os.scandir(folder) as entries:
        names = sorted(one.name for one in entries if one.is_dir() and not _is_hidden(one.name))
    is_split = bool(names) and all(name.lower() in _SPLITS for name in names)
    return names if is_split else []


def images(folder: Path, depth: int = 0) -> Iterator[str | None]:
    """Yield the paths of the images in a directory and below it, sorted; None for other files."""
    with os.scandir(folder) as entries:
        found = sorted(
            (entry for entry in entries if not _is_hidden(entry.name)),
            key=lambda entry: entry.name,
        )
    for entry in found:
        if entry.is_file():
            yield entry.path if entry.name.lower().endswith(_IMAGES) else None
        elif depth < _DEPTH and entry.is_dir(follow_symlinks=False):
            yield from images(Path(entry.path), depth + 1)


def type_of(paths: list[str]) -> str:
    """Return the type of images: bytes, if they are not all of one."""
    found = {TYPES.get(Path(path).suffix.lower(), "bytes") for path in paths}
    return found.pop() if len(found) == 1 else "bytes"
