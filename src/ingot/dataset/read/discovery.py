"""Finding out whether there is a data set at a path, and opening it."""

import errno
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ingot._core import has_fields
from ingot.dataset.manifest import NAME, Manifest, is_shard
from ingot.dataset.place import places, unfinished
from ingot.dataset.read import arrow
from ingot.dataset.read.arrays import is_arrays, open_arrays
from ingot.dataset.read.chain import Chain
from ingot.dataset.read.dataset import Dataset, selection_of
from ingot.dataset.read.directory import Directory
from ingot.dataset.read.granular import GranularRows, layout
from ingot.dataset.read.hdf5 import Hdf5Rows, Location
from ingot.dataset.read.images import AUTO, ImageRows, Labels, is_images, open_images
from ingot.dataset.read.indexed import (
    Indexing,
    layout_of,
    listed_in,
    open_folder,
    open_indexed,
)
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Source
from ingot.dataset.spec import Spec, SpecLike
from ingot.errors import FormatError, counted
from ingot.records.expand import StrPath, absolute, check_regular, expand, name_of, named
from ingot.records.formats import format_of, is_ingot, plain_name

_LISTED = 5


@dataclass(frozen=True, slots=True)
class Options:
    """How to open a data set, as for `ingot.open`."""

    partial: bool = False
    allow_pickle: bool = False
    skip_damaged: bool = False
    spec: SpecLike | None = None
    index_dir: str | None = None
    labels: Labels = AUTO
    separator: str | None = None
    allow_external: bool = False

    def indexing(self, layout: str) -> Indexing:
        """Return how to open files of another format."""
        return Indexing(layout, self.spec, self.index_dir, self.allow_pickle)

    def choice(self) -> arrow.Choice:
        """Return which columns to read."""
        return arrow.Choice(self.spec, self.allow_pickle)


def find_dataset(source: StrPath | Iterable[StrPath], options: Options) -> Dataset | None:
    """Open the data set that `source` refers to; return None for anything else.

    The errors are those of `ingot.open`.
    """
    if not isinstance(source, str | os.PathLike | Sequence):
        return None
    places = named(source)
    folder = absolute(places[0]) if len(places) == 1 else None
    if folder is not None and places[0] != "":
        check_regular(str(folder))
        for place in _PLACES:
            if (found := place(folder, options)) is not None:
                return _fitting(found, options, place)
    if not _are_alike(places) and (found := _open_each(places, options)) is not None:
        return found
    paths = expand(source)
    for path in paths[:1]:
        check_regular(path)
    name = name_of(source, paths) if paths else ""
    for files in _FILES if paths else ():
        if (found := files(paths, name, options)) is not None:
            return _fitting(found, options, files)
    return None


def _are_alike(places: Sequence[str]) -> bool:
    """Return whether these are one place, or files of one format by their names."""
    if len(places) < 2:  # noqa: PLR2004
        return True
    formats = {format_of(plain_name(place)) for place in places}
    return len(formats) == 1 and not any(absolute(place).is_dir() for place in places)


def _open_each(places: Sequence[str], options: Options) -> Dataset | None:
    """Open data sets of any formats as one; None if one of these is not a data set.

    Raises:
        FormatError: Their fields differ, or the numbers of their classes do.
    """
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
    """Refuse directories of images whose labels mean different classes.

    Raises:
        FormatError: They do.
    """
    images = [one for one in opened if isinstance(selection_of(one).source, ImageRows)]
    for one in images:
        if one.metadata != images[0].metadata:
            message = (
                f"{one.path}: the classes are {one.metadata.get('classes')}, but those of "
                f"{images[0].path} are {images[0].metadata.get('classes')}; pass classes= to give "
                "both the same"
            )
            raise FormatError(message, one.path)


def _fitting(found: Dataset, options: Options, kind: object) -> Dataset:
    """Refuse options that a data set does not take.

    Raises:
        ValueError: It knows its fields, there are no images that could have classes, or these
            are not CSV files.
    """
    message = None
    if options.spec is not None and kind in _KNOWN:
        message = (
            f"{found.path}: these rows know their fields: leave out spec=, and choose fields with "
            "select(...)"
        )
    elif options.labels.is_given and kind is not _image_directory:
        message = f"{found.path}: labels= and classes= are for directories of images"
    elif options.separator is not None and not _is_csv(found):
        message = f"{found.path}: separator= is for CSV files"
    if message is not None:
        found.close()
        raise ValueError(message)
    return found


def _is_csv(found: Dataset) -> bool:
    known = format_of(plain_name(found.paths[0])) if found.paths else None
    return known is not None and known.name == "csv"


def _hdf5_location(path: Path, options: Options) -> Dataset | None:
    found = Location.find(str(path)) is not None
    return _open_hdf5([str(path)], str(path), options) if found else None


def _ingot_directory(folder: Path, options: Options) -> Dataset | None:
    return _open_directory(folder, options) if (folder / NAME).is_file() else None


def _granular_directory(folder: Path, _: Options) -> Dataset | None:
    if layout.is_dataset(folder) or layout.is_sharded(folder):
        return _open_granular(folder)
    if layout.is_unfinished(folder):
        message = f"{folder}: Granular's writer did not finish this data set"
        raise FormatError(message, str(folder))
    return None


def _arrow_directory(folder: Path, options: Options) -> Dataset | None:
    if splits := arrow.splits_of(folder):
        message = (
            f"{folder}: this is a DatasetDict with the splits {', '.join(map(repr, splits))}; "
            f"open one of them: ingot.open({str(folder / splits[0])!r})"
        )
        raise FormatError(message, str(folder))
    if arrow.find(folder) is None:
        return None
    saved = arrow.SavedFolder(str(folder), options.partial)
    return Dataset(arrow.ArrowRows(saved, options.choice()))


def _arrow_files(paths: Sequence[str], name: str, options: Options) -> Dataset | None:
    if not arrow.is_arrow(paths[0]):
        return None
    return Dataset(arrow.ArrowRows(arrow.Files(paths, options.partial, name), options.choice()))


def _listed_directory(folder: Path, options: Options) -> Dataset | None:
    listed = listed_in(folder)
    if listed is None:
        return None
    if listed.holds_arrow:
        return Dataset(arrow.ArrowRows(arrow.Chunks(str(folder)), options.choice()))
    return Dataset(open_folder(folder, listed, options.indexing(listed.layout)))


def _image_directory(folder: Path, options: Options) -> Dataset | None:
    if not is_images(folder):
        return None
    found = Dataset(open_images(folder, options.indexing(""), options.labels))
    return found if options.spec is None else found.select(*Spec.of(options.spec))


def _hdf5_files(paths: Sequence[str], name: str, options: Options) -> Dataset | None:
    found = Location.find(paths[0]) is not None
    return _open_hdf5(paths, name, options) if found else None


def _ingot_files(paths: Sequence[str], name: str, options: Options) -> Dataset | None:
    if not has_fields(paths[0]):
        return None
    if Path(name).is_dir():
        _check_no_writer(Path(name), paths)
    partial, allow_pickle = options.partial, options.allow_pickle
    return Dataset(IngotSource.open(paths, name, partial=partial, allow_pickle=allow_pickle))


def _indexed_files(paths: Sequence[str], name: str, options: Options) -> Dataset | None:
    layout = layout_of(paths[0], partial=options.partial, separator=options.separator)
    if layout is None or is_ingot(paths[0]):  # Records of Ingot's own may have any name.
        return None
    _check_one_format(paths)
    found = open_indexed(paths, options.indexing(layout), name)
    return None if found is None else Dataset(found)


def _array_files(paths: Sequence[str], name: str, options: Options) -> Dataset | None:
    del options
    if not is_arrays(paths[0]):
        return None
    _check_one_format(paths)
    return Dataset(open_arrays(paths, name))


_PLACES = (
    _hdf5_location,
    _ingot_directory,
    _granular_directory,
    _arrow_directory,
    _listed_directory,
    _image_directory,
)
"""The kinds of data sets that one path refers to; each opens it, or returns None."""

_FILES = (_hdf5_files, _arrow_files, _ingot_files, _indexed_files, _array_files)
"""The kinds of data sets in several files, which are in one directory or not."""

_KNOWN = (
    _hdf5_location,
    _ingot_directory,
    _granular_directory,
    _hdf5_files,
    _ingot_files,
    _array_files,
)
"""The kinds that know their fields."""


def _check_one_format(paths: Sequence[str]) -> None:
    """Refuse files of several formats, by their names.

    Raises:
        FormatError: They have several.
    """
    first = format_of(plain_name(paths[0]))
    for path in paths:
        other = format_of(plain_name(path))
        if first is not None and other is not None and other is not first:
            message = (
                f"{path}: this is {other.title}, but {paths[0]} is {first.title}; open them "
                "separately"
            )
            raise FormatError(message, path)


def _check_no_writer(folder: Path, paths: Sequence[str]) -> None:
    """Refuse a directory whose files a writer has made and not committed.

    Raises:
        FormatError: It is one.
    """
    if any(is_shard(Path(path).name) for path in paths):
        why = "its writer is still open, or was killed"
        if missing := unfinished(folder):
            why = missing
        elif places(folder):
            why = "all writers have finished; ingot.dataset.commit(path) commits their rows"
        message = (
            f"{folder}: no rows are committed in this data set, it has no {NAME}: {why}; "
            f"if this is a copy, copy {NAME} too; "
            f"ingot.open({str(folder / '*.ingot')!r}) reads the files as they are"
        )
        raise FormatError(message, str(folder))


def _open_hdf5(paths: Sequence[str], name: str, options: Options) -> Dataset:
    sources = []
    for path in paths:
        location = Location.find(path)
        if location is None and not Path(path).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if location is None:
            message = f"{path}: this is not an HDF5 file, but {paths[0]} is; open them separately"
            raise FormatError(message, path)
        partial, external = options.partial, options.allow_external
        sources.append(Hdf5Rows(location, partial=partial, allow_external=external))
    if len(sources) == 1:
        return Dataset(sources[0])
    return _chained(sources, name)


def _chained(sources: Sequence[Source], name: str) -> Dataset:
    parts = [Selection(one, tuple(one.spec), range(len(one))) for one in sources]
    return Dataset(Chain(parts, name))


def _open_directory(folder: Path, options: Options) -> Dataset:
    allow_pickle = options.allow_pickle
    if options.skip_damaged:
        manifest = Manifest.read(folder)
        found = Directory.of(folder, _sound(folder, manifest, allow_pickle=allow_pickle))
    else:
        found = Directory.read(folder)
    try:
        return Dataset(found.open(allow_pickle=allow_pickle))
    except FileNotFoundError:
        if not (folder / NAME).exists() or Directory.read(folder).identity() == found.identity():
            raise
    # Meanwhile a writer has replaced the data set.
    return _open_directory(folder, options)


def _sound(folder: Path, manifest: Manifest, *, allow_pickle: bool) -> Manifest:
    """Return a manifest without the files that cannot be opened, and warn about those.

    Raises:
        FormatError: No file can be opened.
    """
    sound, lost = [], []
    for shard in manifest.shards:
        try:
            one = Directory.of(folder, replace(manifest, shards=(shard,)))
            one.open(allow_pickle=allow_pickle).close()
        except (FormatError, OSError) as error:
            lost.append(f"{shard.name} ({counted(shard.rows, 'row')}): {error}")
        else:
            sound.append(shard)
    if lost:
        rows = sum(shard.rows for shard in sound)
        total = sum(shard.rows for shard in manifest.shards)
        message = (
            f"{folder}: {rows:,} of {total:,} rows can be read; skipped {len(lost)} of "
            f"{counted(len(manifest.shards), 'file')}: {'; '.join(lost[:_LISTED])}"
        )
        if not sound:
            raise FormatError(message, str(folder))
        warnings.warn(message, stacklevel=7)
    return replace(manifest, shards=tuple(sound))


def _open_granular(folder: Path) -> Dataset:
    try:
        if layout.is_dataset(folder):
            return Dataset(GranularRows.open(folder))
        names = layout.shards((one.name for one in folder.iterdir()), str(folder))
        sources = [GranularRows.open(folder / name) for name in names]
        return _chained(sources, str(folder))
    except FormatError:
        raise
    except ValueError as error:
        message = f"{folder}: {error}"
        raise FormatError(message, str(folder)) from error
