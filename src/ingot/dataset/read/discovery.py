"""Opening whatever a user has: records or a data set."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ingot._core import has_fields
from ingot.dataset.manifest import NAME, Manifest
from ingot.dataset.read.chain import Chain
from ingot.dataset.read.dataset import Dataset
from ingot.dataset.read.directory import Directory
from ingot.dataset.read.granular import GranularRows, layout
from ingot.dataset.read.hdf5 import Hdf5Rows, Location
from ingot.dataset.read.ingot_source import Stored
from ingot.dataset.read.source import Part, Source
from ingot.dataset.write.vacancy import is_shard
from ingot.errors import FormatError
from ingot.records.expand import StrPath, absolute, expand
from ingot.records.reader import Reader

_LISTED = 5


def open(  # noqa: A001
    source: StrPath | Sequence[StrPath],
    *,
    partial: bool = False,
    allow_pickle: bool = False,
    skip_damaged: bool = False,
) -> Reader | Dataset:
    """Open record files or a data set for reading.

    Files of records open as a `Reader`, one sequence of bytes. Files whose rows have fields,
    HDF5 files, and directories written by `DatasetWriter` or Granular open as a `Dataset`.
    Opening an Ingot file takes two or three small reads, whatever its size; for FFRecord
    (`.ffr`) and ArrayRecord files it reads the index.

    Args:
        source: A file, a directory (its record files, sorted by name), a pattern such as
            `train-*.ingot`, a location in an HDF5 file such as `mnist.h5/train`, or a list of
            these.
        partial: Read the committed records of an unfinished Ingot file, even while it is
            still being written; `Reader.refresh` finds further records.
        allow_pickle: Read fields that are stored as pickle, which can execute any code.
            Without it, reading such a field raises FormatError.
        skip_damaged: Open a data set in a directory without those of its files that are
            missing, truncated or damaged at their ends; a warning lists them.

    Raises:
        FileNotFoundError: There is no such file.
        UnfinishedFileError: The file was not closed by its writer.
        FormatError: The file is damaged, or its format is unknown.
    """
    if isinstance(source, str | os.PathLike):
        folder = absolute(source)
        if Location.find(str(folder)) is not None:
            return _open_hdf5([str(folder)], None, partial=partial)
        if (folder / NAME).is_file():
            return _open_directory(folder, allow_pickle=allow_pickle, skip_damaged=skip_damaged)
        if layout.is_dataset(folder) or layout.is_sharded(folder):
            return _open_granular(folder)
        if layout.is_unfinished(folder):
            message = f"{folder}: Granular's writer did not finish this data set"
            raise FormatError(message, str(folder))
    if isinstance(source, str | os.PathLike | Sequence):
        paths = expand(source)
        if paths and Location.find(paths[0]) is not None:
            is_folder = isinstance(source, str | os.PathLike) and absolute(source).is_dir()
            folder_path = str(absolute(source)) if is_folder else None
            return _open_hdf5(paths, folder_path, partial=partial)
        if paths and has_fields(paths[0]):
            if isinstance(source, str | os.PathLike) and absolute(source).is_dir():
                _check_no_writer(absolute(source), paths)
            return Dataset(Stored.open(paths, partial=partial, allow_pickle=allow_pickle))
    return Reader(source, partial=partial)


def _check_no_writer(folder: Path, paths: Sequence[str]) -> None:
    """Refuse a directory whose files a writer has made and not committed.

    Raises:
        FormatError: It is one.
    """
    if any(is_shard(Path(path).name) for path in paths):
        message = (
            f"{folder}: no rows are committed in this data set: it has no {NAME}. Its writer is "
            f"still open, or was killed; if this is a copy, copy {NAME} too; "
            f"ingot.open({str(folder / '*.ingot')!r}) reads the files as they are"
        )
        raise FormatError(message, str(folder))


def open_dataset(
    source: StrPath | Sequence[StrPath],
    *,
    partial: bool = False,
    allow_pickle: bool = False,
    skip_damaged: bool = False,
) -> Dataset:
    """Open a data set, as `open` does; refuse files of records.

    Raises:
        FormatError: These are records without fields, or as for `open`.
    """
    found = open(source, partial=partial, allow_pickle=allow_pickle, skip_damaged=skip_damaged)
    if isinstance(found, Dataset):
        return found
    message = f"{found.path}: these are records without fields; open with ingot.open_records"
    raise FormatError(message, found.path)


def open_records(source: StrPath | Sequence[StrPath], *, partial: bool = False) -> Reader:
    """Open files of records, as `open` does; refuse a data set.

    Raises:
        FormatError: These are rows of named fields, or as for `open`.
    """
    found = open(source, partial=partial)
    if isinstance(found, Reader):
        return found
    message = f"{found.path}: these are rows of named fields; open with ingot.open_dataset"
    raise FormatError(message, found.path)


def _open_hdf5(paths: Sequence[str], folder: str | None, *, partial: bool) -> Dataset:
    sources = []
    for path in paths:
        location = Location.find(path)
        if location is None:
            message = f"{path}: this is not an HDF5 file, but {paths[0]} is; open them separately"
            raise FormatError(message, path)
        sources.append(Hdf5Rows(location, partial=partial))
    if len(sources) == 1:
        return Dataset(sources[0])
    return _chained(sources, folder)


def _chained(sources: Sequence[Source], folder: str | None = None) -> Dataset:
    return Dataset(Chain([Part(one, tuple(one.spec), range(len(one))) for one in sources], folder))


def _open_directory(folder: Path, *, allow_pickle: bool, skip_damaged: bool) -> Dataset:
    if skip_damaged:
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
    return _open_directory(folder, allow_pickle=allow_pickle, skip_damaged=skip_damaged)


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
            lost.append(f"{shard.name} ({shard.rows:,} rows): {error}")
        else:
            sound.append(shard)
    if lost:
        rows = sum(shard.rows for shard in sound)
        total = sum(shard.rows for shard in manifest.shards)
        message = (
            f"{folder}: {rows:,} of {total:,} rows can be read; skipped {len(lost)} of "
            f"{len(manifest.shards)} files: {'; '.join(lost[:_LISTED])}"
        )
        if not sound:
            raise FormatError(message, str(folder))
        warnings.warn(message, stacklevel=4)
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
