"""Opening a directory of images: its classes, or its file of metadata."""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.images.listing import METADATA, images, splits_of
from ingot.dataset.read.images.source import IMAGE, NAME, ImageRows
from ingot.dataset.read.indexed import Indexing, layout_of, open_indexed
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.plan import read
from ingot.dataset.spec import Spec
from ingot.errors import FormatError


def open_images(folder: Path, indexing: Indexing) -> ImageRows:
    """Open a directory of images.

    Args:
        folder: The directory.
        indexing: How to open the file of metadata.

    Raises:
        FormatError: The metadata name files that are not there, or there are no images.
    """
    again = (_reopen, str(folder), indexing)
    wanted = {} if indexing.spec is None else dict(Spec.of(indexing.spec))
    kind = wanted.get(IMAGE)
    about = next((folder / name for name in METADATA if (folder / name).is_file()), None)
    if about is not None:
        source = _metadata(about, indexing)
        paths = [str(folder / name) for name in _names(source, about)]
        missing = next((path for path in paths if not Path(path).is_file()), None)
        if missing is not None:
            message = f"{about}: it names {missing}, which is not there"
            raise FormatError(message, str(about))
        return _fitting(ImageRows(folder, paths, None, source, again, kind=kind), wanted)
    if splits := splits_of(folder):
        listed = ", ".join(map(repr, splits))
        message = (
            f"{folder}: this directory has the splits {listed}; open one of them: "
            f"ingot.open({str(folder / splits[0])!r})"
        )
        raise FormatError(message, str(folder))
    paths = [path for path in images(folder) if path is not None]
    if not paths:
        message = f"{folder}: there are no images"
        raise FormatError(message, str(folder))
    classes = _classes(folder, paths)
    return _fitting(ImageRows(folder, paths, classes, None, again, kind=kind), wanted)


def _classes(folder: Path, paths: list[str]) -> tuple[list[str], npt.NDArray[np.int64]] | None:
    """Return the names of the classes, and the class of each image; None without classes."""
    parents = [Path(path).parent for path in paths]
    if set(parents) == {folder}:
        return None
    names = sorted({parent.name for parent in parents})
    numbers = {name: k for k, name in enumerate(names)}
    return names, np.array([numbers[parent.name] for parent in parents], np.int64)


def _fitting(found: ImageRows, wanted: Mapping[str, str]) -> ImageRows:
    """Refuse a specification that the images do not fit; it says of which type they are.

    Raises:
        FormatError: There is no such field, or it has another type.
    """
    for name, kind in wanted.items():
        if found.spec.get(name) != kind:
            there = ", ".join(f"{one!r}: {type_name}" for one, type_name in found.spec.items())
            message = f"{found.path}: there is no field {name!r} of type {kind}, only {there}"
            raise FormatError(message, found.path)
    return found


def _metadata(path: Path, indexing: Indexing) -> IngotSource:
    layout = layout_of(str(path)) or ""
    opened = open_indexed([str(path)], Indexing(layout, None, indexing.index_dir))
    if opened is None or opened.spec.get(NAME) != "utf8":
        message = f"{path}: every row needs a {NAME!r} of text"
        raise FormatError(message, str(path))
    if IMAGE in opened.spec:
        message = f"{path}: {IMAGE!r} is the name of the field of images; rename it"
        raise FormatError(message, str(path))
    return opened


def _names(source: IngotSource, path: Path) -> list[str]:
    """Return the names of the images, none of which leads out of the directory."""
    found: list[str] = read(source.plan(np.arange(len(source)), {NAME: None}))[NAME]
    for name in found:
        if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            message = f"{path}: {name!r} leads out of the directory"
            raise FormatError(message, str(path))
    return found


def _reopen(folder: str, indexing: Indexing, identity: str, raw: Collection[str] = ()) -> ImageRows:
    """Open the directory that was pickled.

    Raises:
        FormatError: It has other images.
    """
    opened = open_images(Path(folder), indexing)
    if opened.identity() != identity:
        message = f"{folder}: the images were replaced since the data set was pickled"
        raise FormatError(message, folder)
    return opened.raw(raw) if raw else opened
