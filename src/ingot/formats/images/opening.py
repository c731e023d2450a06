"""Opening a directory of images: its classes, or its file of metadata."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ingot.dataset.read.plan import read
from ingot.dataset.read.source import Source
from ingot.dataset.spec import Spec
from ingot.errors import FormatError
from ingot.formats.base.options import Options
from ingot.formats.images.classes import Classes, classes_of
from ingot.formats.images.listing import METADATA, is_images, listing_of
from ingot.formats.images.source import IMAGE, NAME, ImageRows
from ingot.formats.table import format_of, load


def open_directory(folder: Path, options: Options) -> ImageRows | None:
    """Open a directory of images; return None for any other."""
    return _open(folder, options) if is_images(folder) else None


def _open(folder: Path, options: Options) -> ImageRows:
    """Open a directory of images.

    Args:
        folder: The directory.
        options: How images get their classes, and how the file of metadata is opened.

    Raises:
        FormatError: The metadata name files that are not there, there are no images, or the
            directories do not fit `labels`.
        ValueError: There are metadata, and `labels` asks for classes.
    """
    labels = options.labels
    again = (_reopen, str(folder), options)
    wanted = {} if options.spec is None else dict(Spec.of(options.spec))
    kind = wanted.get(IMAGE)
    about = next((folder / name for name in METADATA if (folder / name).is_file()), None)
    if about is not None:
        if labels.is_given and labels.by != "none":
            message = (
                f"{about}: with metadata, images have no classes by directory; leave out labels= "
                "and classes="
            )
            raise ValueError(message)
        source = _metadata(about, options)
        names = _names(source, about)
        _check_links(folder, names, about)
        missing = next((name for name in names if not os.path.isfile(folder / name)), None)  # noqa: PTH113 -- a name that is too long is no error
        if missing is not None:
            message = f"{about}: it names {folder / missing}, which does not exist"
            raise FormatError(message, str(about))
        classes = Classes(names, None, np.empty(0, np.int64))
        return _fitting(ImageRows(folder, classes, source, again, kind=kind), wanted)
    listing = listing_of(folder)
    if not listing.images:
        message = f"{folder}: there are no images"
        raise FormatError(message, str(folder))
    classes = classes_of(folder, listing, labels)
    return _fitting(ImageRows(folder, classes, None, again, kind=kind), wanted)


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


def _metadata(path: Path, options: Options) -> Source:
    plain = Options(allow_pickle=options.allow_pickle, index_dir=options.index_dir)
    found = format_of(path)
    opened: Source | None = None
    if found is not None and found.files is not None:
        opened = load(found.files)([str(path)], str(path), plain)
    if opened is None or opened.spec.get(NAME) != "utf8":
        message = f"{path}: every row needs a {NAME!r} of text"
        raise FormatError(message, str(path))
    if IMAGE in opened.spec:
        message = f"{path}: {IMAGE!r} is the name of the field of images; rename it"
        raise FormatError(message, str(path))
    return opened


def _names(source: Source, path: Path) -> list[str]:
    """Return the names of the images, none of which leads out of the directory."""
    found: list[str] = read(source.plan(np.arange(len(source)), {NAME: None}))[NAME]
    for name in found:
        if Path(name).is_absolute() or ".." in Path(name).parts or "\0" in name:
            message = f"{path}: {name!r} leads out of the directory"
            raise FormatError(message, str(path))
    return found


def _check_links(folder: Path, names: Iterable[str], about: Path) -> None:
    """Refuse names that lead out of the directory by a link: metadata would choose what is read.

    In a snapshot of the Hugging Face hub every file is a link into the `blobs` of its cache.

    Raises:
        FormatError: One does.
    """
    root = os.path.realpath(folder)
    above = next((one for one in Path(root).parents if one.name == "snapshots"), None)
    roots = [root] if above is None else [root, str(above.with_name("blobs"))]
    real = {"": root}  # Of each directory and link on the way.
    for name in names:
        here = ""
        for part in Path(name).parts:
            parent, here = real[here], os.path.join(here, part)  # noqa: PTH118
            if here in real:
                continue
            place = os.path.join(parent, part)  # noqa: PTH118
            target = os.path.realpath(place) if os.path.islink(place) else place  # noqa: PTH114
            if all(os.path.commonpath([one, target]) != one for one in roots):
                message = f"{about}: {name!r} leads out of the directory: {place} links to {target}"
                raise FormatError(message, str(about))
            real[here] = target


def _reopen(folder: str, options: Options, identity: str) -> ImageRows:
    """Open the directory that was pickled.

    Raises:
        FormatError: It has other images.
    """
    opened = _open(Path(folder), options)
    if opened.identity != identity:
        message = f"{folder}: the images were replaced since the data set was pickled"
        raise FormatError(message, folder)
    return opened
