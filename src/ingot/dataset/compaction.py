"""Merging the small files of a data set."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ingot.dataset import folder as folders
from ingot.dataset.copying import packed
from ingot.dataset.directory import open_shards
from ingot.dataset.journal import check_not_built
from ingot.dataset.manifest import Manifest, Shard
from ingot.dataset.metadata import json_of
from ingot.dataset.owner import Owner
from ingot.dataset.progress import Meter, Progress
from ingot.dataset.shards import Compression, Options, ShardWriter, limits, names_of
from ingot.dataset.source import Part
from ingot.records.paths import absolute


def compact(
    path: str | os.PathLike[str],
    *,
    shard_bytes: int | str | None = None,
    shard_rows: int | None = None,
    compression: Compression = "auto",
    level: int = 3,
    progress: Progress = None,
    sync: bool = True,
) -> int:
    """Merge consecutive small files of a data set in a directory.

    A writer that calls `flush` often leaves many small files. This copies their rows as stored,
    after verification, into files of up to the given size, and keeps the order of the rows.
    Each new file replaces its old ones in one step, so an interruption loses nothing, and the
    same call does the rest. Writers may append at the same time. Open readers keep the old
    files.

    Args:
        path: The directory.
        shard_bytes: The maximum size of a file, such as "256MB"; "1GB" if neither this nor
            `shard_rows` is given.
        shard_rows: The maximum number of rows in a file.
        compression: As for `DatasetWriter`.
        level: As for `DatasetWriter`.
        progress: As for `DatasetWriter`.
        sync: Whether to wait until the bytes are on the storage device.

    Returns:
        The number of files that the data set has now.

    Raises:
        FileNotFoundError: There is no data set in this directory.
        CorruptFileError: A file is damaged. It stays, and so do the files not yet merged.
        FormatError: Another writer has replaced the data set meanwhile.

    Example:
        >>> ingot.compact("cats")  # doctest: +SKIP
    """
    folder = absolute(path)
    if folder.is_file():
        message = f"{folder}: a single file needs no compacting"
        raise NotADirectoryError(message)
    options = Options(compression, level, sync, *limits(shard_bytes, shard_rows))
    check_not_built(folder)
    manifest = Manifest.read(folder)
    runs = _runs(manifest.shards, options)
    if not runs:
        return len(manifest.shards)
    meter = Meter(progress, str(folder))
    rows = nbytes = 0
    owner = Owner(folder)
    try:
        for run in runs:
            manifest = _compact(folder, manifest, run, owner, options)
            rows += sum(shard.rows for shard in run)
            nbytes += sum(shard.nbytes for shard in run)
            meter.update(rows, nbytes)
    finally:
        owner.remove_unlisted(Manifest.names(folder))
        owner.release()
    meter.finish(rows, nbytes)
    return len(manifest.shards)


def _runs(shards: Sequence[Shard], options: Options) -> list[list[Shard]]:
    """Return the runs of two or more consecutive files that fit into one new file."""
    most_bytes = math.inf if options.shard_bytes is None else options.shard_bytes
    most_rows = math.inf if options.shard_rows is None else options.shard_rows
    runs: list[list[Shard]] = [[]]
    nbytes = rows = 0
    for shard in shards:
        nbytes, rows = nbytes + shard.nbytes, rows + shard.rows
        if nbytes > most_bytes or rows > most_rows:
            runs.append([])
            nbytes, rows = shard.nbytes, shard.rows
        runs[-1].append(shard)
    return [run for run in runs if len(run) > 1]


def _compact(
    folder: Path, manifest: Manifest, run: Sequence[Shard], owner: Owner, options: Options
) -> Manifest:
    """Merge a run of files into one; return the manifest that is committed then."""
    source = open_shards(folder, replace(manifest, shards=tuple(run)))
    spec = source.spec
    names = names_of(owner.token, manifest.shards.index(run[0]))
    unlimited = Options(options.compression, options.level, options.sync)
    writer = ShardWriter(folder, names, spec, json_of(manifest.metadata), unlimited)
    try:
        for rows in packed(Part(source, tuple(spec), range(len(source))), spec) or ():
            writer.extend(rows)
        writer.finish(at_least_one=True)
    except BaseException:
        writer.abandon()
        raise
    finally:
        source.close()
    with folders.locked(folder):
        superseded = owner.take_over(shard.name for shard in run)
        committed = manifest.exchange(folder, run, writer.finished, sync=options.sync)
    owner.remove(superseded)
    return committed
