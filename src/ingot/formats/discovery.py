"""Finding out whether there is a data set at a path, and opening it."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ingot.dataset.nested import flat
from ingot.dataset.read.dataset import Dataset, selection_of
from ingot.dataset.read.source import Source
from ingot.errors import FormatError
from ingot.formats.base.options import Options
from ingot.formats.table import FORMATS, OWN, Format, format_named, format_of, load, plain_name
from ingot.records.expand import StrPath, absolute, check_regular, list_files, name_of, named

_FRONT = max(len(one.signature) for one in FORMATS)


def find_dataset(source: StrPath | Iterable[StrPath], options: Options) -> Dataset | None:
    """Open the data set that `source` refers to; return None for anything else.

    The errors are those of `ingot.open`.
    """
    if not isinstance(source, str | os.PathLike | Sequence):
        return None
    places = named(source)
    folder = absolute(places[0]) if len(places) == 1 and places[0] != "" else None
    if folder is not None:
        check_regular(str(folder))
        if folder.is_dir():
            if (found := _open_directory(folder, options)) is not None:
                return found
        elif not folder.exists() and _located(str(folder)) is not None:  # Inside of a file.
            return _open_files([str(folder)], str(folder), options)
    if not _are_alike(places) and (found := _open_each(places, options)) is not None:
        return found
    paths = list_files(source)
    if not paths:
        return None
    check_regular(paths[0])
    return _open_files(paths, name_of(source, paths), options)


def _are_alike(places: Sequence[str]) -> bool:
    """Return whether these are one place, or files of one format by their names."""
    if len(places) < 2:  # noqa: PLR2004
        return True
    formats = {format_of(plain_name(place)) for place in places}
    return len(formats) == 1 and not any(absolute(place).is_dir() for place in places)


def _open_each(places: Sequence[str], options: Options) -> Dataset | None:
    """Open data sets of any formats as one; None if one of these is not a data set."""
    opened: list[Dataset] = []
    for place in places:
        found = find_dataset(place, options)
        if found is None:
            for one in opened:
                one.close()
            return None
        opened.append(found)
    _check_classes(opened)
    try:
        return opened[0].concat(*opened[1:])
    except ValueError as error:
        raise FormatError(str(error), opened[0].path) from error


def _check_classes(opened: Sequence[Dataset]) -> None:
    """Refuse data sets whose labels mean different classes."""
    sources = [selection_of(one).source for one in opened]
    labelled = [one for one in sources if "labels" in format_named(one.format).options]
    for one in labelled:
        if one.metadata != labelled[0].metadata:
            message = (
                f"{one.path}: the classes are {one.metadata.get('classes')}, but those of "
                f"{labelled[0].path} are {labelled[0].metadata.get('classes')}; pass classes= to "
                "give both the same"
            )
            raise FormatError(message, one.path)


def _open_directory(folder: Path, options: Options) -> Dataset | None:
    for one in FORMATS:
        if one.directory is None:
            continue
        if one.marks and not any((folder / mark).is_file() for mark in one.marks):
            continue
        source: Source | None = load(one.directory)(folder, options)
        if source is not None:
            return _fitting(source, one, options)
    return None


def _open_files(paths: Sequence[str], name: str, options: Options) -> Dataset | None:
    found = _format_of(paths[0])
    if found is None or found.files is None:
        return None
    if not found.signature:
        _check_one_format(paths)
    source: Source | None = load(found.files)(paths, name, options)
    if source is None and found.is_indexed:  # Ingot's own files may have any name.
        found = OWN
        source = load(found.files or "")(paths, name, options)
    return None if source is None else _fitting(source, found, options)


def _format_of(path: str) -> Format | None:
    """Return the format of a file: by its name, unless it begins as Ingot's own do."""
    by_name = format_of(plain_name(path))
    # The first record of a bag may be any file; opening one that is indexed looks by itself.
    if by_name is not None and (by_name.is_any or by_name.is_indexed):
        return by_name
    front = b""
    if Path(path).is_file():
        with Path(path).open("rb") as file:
            front = file.read(_FRONT)
    begins = (one for one in FORMATS if one.signature and front.startswith(one.signature))
    by_front = next(begins, None)
    return by_front if by_front is OWN else by_name or by_front or _located(path)


def _located(path: str) -> Format | None:
    """Return the format of a file that need not begin as others do, or that a path leads into."""
    known = (one for one in FORMATS if one.locate is not None)
    return next((one for one in known if load(one.locate or "")(path) is not None), None)


def _fitting(source: Source, found: Format, options: Options) -> Dataset:
    """Return rows as a data set; refuse options that its format does not take."""
    message = None
    if options.spec is not None and found.has_fields:
        message = (
            f"{source.path}: these rows know their fields: leave out spec=, and choose fields with "
            "select(...)"
        )
    given = {"labels": options.labels.is_given, "separator": options.separator is not None}
    for option, is_given in given.items():
        if is_given and option not in found.options:
            other = next(one for one in FORMATS if option in one.options)
            texts = " and ".join(f"{name}=" for name in other.options)
            message = f"{source.path}: {texts}: only for {other.title}"
    if message is not None:
        source.close()
        raise ValueError(message)
    dataset = Dataset(source)
    names = [name for name, _ in flat(options.spec or dataset.spec)]
    return dataset if names == list(dataset.spec) else dataset.select(*names)


def _check_one_format(paths: Sequence[str]) -> None:
    """Refuse files of several formats, by their names."""
    first = format_of(plain_name(paths[0]))
    for path in paths:
        other = format_of(plain_name(path))
        if first is not None and other is not None and other is not first:
            message = (
                f"{path}: this is {other.title}, but {paths[0]} is {first.title}; open them "
                "separately"
            )
            raise FormatError(message, path)
