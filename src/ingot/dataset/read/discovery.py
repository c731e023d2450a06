"""Finding out whether there is a data set at a path, and opening it."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ingot._core import has_fields
from ingot.dataset.manifest import NAME, Manifest, is_shard
from ingot.dataset.read.chain import Chain
from ingot.dataset.read.dataset import Dataset
from ingot.dataset.read.directory import Directory
from ingot.dataset.read.granular import GranularRows, layout
from ingot.dataset.read.hdf5 import Hdf5Rows, Location
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Source
from ingot.errors import FormatError
from ingot.records.expand import StrPath, absolute, expand

_LISTED = 5


def find_dataset(
    source: StrPath | Sequence[StrPath],
    *,
    partial: bool = False,
    allow_pickle: bool = False,
    skip_damaged: bool = False,
) -> Dataset | None:
    """Open the data set that `source` refers to; return None for anything else.

    The arguments and errors are those of `ingot.open`.
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
            return Dataset(IngotSource.open(paths, partial=partial, allow_pickle=allow_pickle))
    return None


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
    return Dataset(
        Chain([Selection(one, tuple(one.spec), range(len(one))) for one in sources], folder)
    )


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
        warnings.warn(message, stacklevel=5)
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
