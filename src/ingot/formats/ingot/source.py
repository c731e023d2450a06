"""Opening Ingot files that have fields, and directories with a manifest."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ingot._core import has_fields
from ingot.dataset.manifest import NAME, Manifest, is_shard
from ingot.dataset.place import places, unfinished
from ingot.dataset.read.directory import Directory
from ingot.dataset.read.ingot_source import IngotSource
from ingot.errors import FormatError, counted
from ingot.formats.base.options import Options

_LISTED = 5


def open_files(paths: Sequence[str], name: str, options: Options) -> IngotSource | None:
    """Open files; return None if they are not Ingot's, or have records without fields.

    Raises:
        FormatError: A writer has made them and not committed them.
    """
    if not has_fields(paths[0]):
        return None
    if Path(name).is_dir():
        _check_no_writer(Path(name), paths)
    partial, allow_pickle = options.partial, options.allow_pickle
    return IngotSource.open(paths, name, partial=partial, allow_pickle=allow_pickle)


def _check_no_writer(folder: Path, paths: Sequence[str]) -> None:
    """Refuse a directory whose files a writer has made and not committed."""
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


def open_directory(folder: Path, options: Options) -> IngotSource | None:
    """Open a directory with a manifest; return None for any other.

    Raises:
        FormatError: The manifest is damaged, or lists a file that is.
    """
    if not (folder / NAME).is_file():
        return None
    allow_pickle = options.allow_pickle
    if options.skip_damaged:
        manifest = Manifest.read(folder)
        found = Directory.of(folder, _sound(folder, manifest, allow_pickle=allow_pickle))
    else:
        found = Directory.read(folder)
    try:
        return found.open(allow_pickle=allow_pickle)
    except FileNotFoundError:
        if not (folder / NAME).exists() or Directory.read(folder).identity() == found.identity():
            raise
    # Meanwhile a writer has replaced the data set.
    return open_directory(folder, options)


def _sound(folder: Path, manifest: Manifest, *, allow_pickle: bool) -> Manifest:
    """Return a manifest without the files that cannot be opened, and warn about those."""
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
