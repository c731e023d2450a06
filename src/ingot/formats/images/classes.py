"""The classes of images, by the directories that they are in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from ingot.errors import FormatError
from ingot.formats.base.options import Labels, listed
from ingot.formats.images.listing import Listing, splits_of


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
    of_images = list(map(_name_by(by, folder), images))
    if labels.classes is not None:
        names = list(labels.classes)
        _check_listed(folder, of_images, names)
    else:
        names = listing.folders if by == "folder" else sorted(set(of_images))
        _check_full(folder, of_images, names)
    numbers = {name: k for k, name in enumerate(names)}
    return Classes(images, names, np.array([numbers[name] for name in of_images], np.int64))


def _name_by(by: str, folder: Path) -> Callable[[str], str]:
    def parent(name: str) -> str:
        return PurePosixPath(name).parent.name or folder.name

    choices: dict[str, Callable[[str], str]] = {
        "folder": lambda name: name.partition("/")[0],
        "parent": parent,
        "path": lambda name: name.rpartition("/")[0] or ".",
    }
    return choices[by]


def _check_plain(folder: Path, listing: Listing) -> None:
    """Refuse a directory that may be meant in several ways."""
    if splits := splits_of(listing.folders):
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


def _check_listed(folder: Path, of_images: Sequence[str], names: Sequence[str]) -> None:
    others = sorted(set(of_images) - set(names))
    if others:
        message = (
            f"{folder}: there are images in {listed(others)}, which classes= does not list; "
            f"expected {listed(names)}"
        )
        raise FormatError(message, str(folder))
