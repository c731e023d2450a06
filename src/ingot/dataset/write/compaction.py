"""Merging the small files of a data set."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ingot.codecs import Codec
from ingot.dataset import atomic
from ingot.dataset.manifest import Manifest, Shard
from ingot.dataset.read.directory import Directory
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.selection import Selection
from ingot.dataset.spec import Spec
from ingot.dataset.write import superseded
from ingot.dataset.write.journal import check_not_built
from ingot.dataset.write.lease import Lease
from ingot.dataset.write.metadata import json_of
from ingot.dataset.write.packed import packed
from ingot.dataset.write.shards import (
    Compression,
    Encodings,
    Options,
    ShardWriter,
    limits,
    names_of,
)
from ingot.records.expand import absolute
from ingot.records.progress import Meter, Progress

_FILES_MAX = 64
"""Files that are open at a time; what they become is compacted in turn."""


def compact(
    path: str | os.PathLike[str],
    *,
    shard_bytes: int | str | None = None,
    shard_rows: int | None = None,
    codecs: Mapping[str, Codec] | Sequence[Codec] | None = None,
    compression: Compression = "auto",
    level: int = 3,
    progress: Progress = None,
    sync: bool = True,
    keep_for: float = superseded.KEEP_S,
) -> int:
    """Merge consecutive small files of a data set in a directory.

    A writer that calls `flush` often leaves many small files. This copies their rows as stored,
    after verification, into files of up to the given size, and keeps the order of the rows.
    Each new file replaces its old ones in one step, so an interruption loses nothing, and the
    same call does the rest. Writers may append at the same time.

    Open readers continue with the old files, which stay for `keep_for` seconds: a day, unless you
    say otherwise. The first writer or `compact` after that removes them.

    Args:
        path: The directory.
        shard_bytes: The maximum size of a file, such as "256MB"; "1GB" if neither this nor
            `shard_rows` is given.
        shard_rows: The maximum number of rows in a file.
        codecs: Codecs for types that are not registered, as for `DatasetWriter`.
        compression: As for `DatasetWriter`.
        level: As for `DatasetWriter`.
        progress: As for `DatasetWriter`.
        sync: Whether to wait until the bytes are on the storage device.
        keep_for: For how many seconds superseded files stay. Those of earlier calls stay no
            longer either, so 0 frees the space of all at once; readers that are open and have
            more files than they can hold open then fail.

    Returns:
        The number of files that the data set has now.

    Raises:
        FileNotFoundError: There is no data set in this directory.
        CorruptFileError: A file is damaged. It stays, and so do the files not yet merged.
        FormatError: A type is not registered; pass its codec.

    Example:
        >>> ingot.compact("cats")  # doctest: +SKIP
    """
    folder = absolute(path)
    if folder.is_file():
        message = f"{folder}: a single file needs no compacting"
        raise NotADirectoryError(message)
    options = Options(compression, level, sync, *limits(shard_bytes, shard_rows))
    superseded.check_keep_for(keep_for)
    check_not_built(folder)
    manifest = Manifest.read(folder)
    if not _runs(manifest.shards, options):
        if superseded.names_in(folder):
            with atomic.locked(folder):
                superseded.clear(folder, keep_for)
        return len(manifest.shards)
    spec = None if codecs is None else Spec.of(manifest.spec, codecs)
    meter = Meter(progress, str(folder))
    rows = nbytes = 0
    lease = Lease(folder)
    names = names_of(lease.token, len(manifest.shards))
    work = _Work(folder, names, options, spec, keep_for)
    try:
        while runs := _runs(manifest.shards, options):
            for run in runs:
                work.compact(manifest, run)
                rows += sum(shard.rows for shard in run)
                nbytes += sum(shard.nbytes for shard in run)
                meter.update(rows, nbytes)
            manifest = Manifest.read(folder)
    finally:
        lease.remove_unlisted()
        lease.release()
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
        if nbytes > most_bytes or rows > most_rows or len(runs[-1]) >= _FILES_MAX:
            runs.append([])
            nbytes, rows = shard.nbytes, shard.rows
        runs[-1].append(shard)
    return [run for run in runs if len(run) > 1]


@dataclass(frozen=True, slots=True)
class _Work:
    """How runs of files are merged.

    Attributes:
        folder: The directory.
        names: Names for new files.
        options: How they are written.
        spec: The fields, if codecs were given.
        keep_for: For how many seconds the old files stay.
        encodings: How the first of them is compressed.
    """

    folder: Path
    names: Iterator[str]
    options: Options
    spec: Spec | None
    keep_for: float
    encodings: Encodings = field(default_factory=Encodings)

    def compact(self, manifest: Manifest, run: Sequence[Shard]) -> None:
        """Write a run of files as one, which replaces them.

        Nothing is done if another process has replaced them meanwhile.
        """
        listed = replace(manifest, shards=tuple(run))
        try:
            source = Directory.of(self.folder, listed).open(spec=self.spec)
            source.native.open_files()
        except FileNotFoundError:
            if Manifest.read(self.folder).has(run):
                raise
            return
        merged = self._merged(source, json_of(manifest.metadata))
        with atomic.locked(self.folder):
            now = Manifest.read(self.folder)
            if not now.has(run):
                superseded.remove(self.folder, [shard.name for shard in merged])
                return
            sync = self.options.sync
            names = (shard.name for shard in run)
            superseded.supersede(self.folder, names, self.keep_for, sync=sync)
            now.exchange(self.folder, run, merged, sync=sync)
            superseded.clear(self.folder, self.keep_for)

    def _merged(self, source: IngotSource, metadata: str) -> list[Shard]:
        """Write the rows of files to one file."""
        unlimited = Options(self.options.compression, self.options.level, self.options.sync)
        what = (source.spec, metadata, unlimited)
        writer = ShardWriter(self.folder, self.names, *what, encodings=self.encodings)
        selection = Selection(source, tuple(source.spec), range(len(source)))
        try:
            for rows in packed(selection, source.spec) or ():
                writer.extend(rows)
            writer.finish(at_least_one=True)
        except BaseException:
            writer.abandon()
            raise
        finally:
            source.close()
        return writer.finished
