"""Writing a data set in a directory."""

import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from ingot.dataset import atomic
from ingot.dataset.manifest import NAME, Manifest, Shard, is_shard
from ingot.dataset.place import Place
from ingot.dataset.spec import Spec
from ingot.dataset.write import superseded
from ingot.dataset.write.contribution import Contribution
from ingot.dataset.write.file import none_at
from ingot.dataset.write.journal import check_not_built
from ingot.dataset.write.lease import Lease
from ingot.dataset.write.metadata import check_metadata, json_of
from ingot.dataset.write.packed import Cells, PackedRows
from ingot.dataset.write.run import drop, join
from ingot.dataset.write.shards import Options, ShardWriter, names_of
from ingot.errors import CorruptFileError, FormatError, StorageError, counted, storage_errors
from ingot.formats.table import FORMATS, SUFFIXES

_PAUSE_S = 1.0
"""The time between two commits of full files: each one writes the whole manifest."""


class DirectoryTarget:
    """A data set in a directory, which changes when its manifest is replaced.

    With a place, this is one of several writers. It leaves what it has written as a part, and
    the writer that finishes last commits all parts.

    Attributes:
        rows: How many rows it has at the start, without those of other writers.
    """

    def __init__(
        self,
        path: Path,
        spec: Spec,
        metadata: dict[str, Any] | None,
        options: Options,
        *,
        append: bool,
        overwrite: bool,
        is_atomic: bool = False,
        shard: tuple[int, int] | None = None,
        run: str | None = None,
        keep_for: float = superseded.KEEP_S,
    ) -> None:
        with storage_errors():
            check_vacant(path)
            check_not_built(path)
            # Writers that share a directory leave it to those that are about to begin.
            self._makes_folder = shard is None and not path.exists()
            atomic.make(path, sync=options.sync)
        found = Manifest.find(path)
        if found is not None and shard is not None:
            _check_uncommitted(path, found, shard, run, is_next=append or overwrite)
        if found is not None and not append and not overwrite:
            message = (
                f"{path}: the data set exists; pass append=True to append to it, or "
                "overwrite=True to replace it once the new one is finished"
            )
            raise FileExistsError(message)
        if found is not None and append:
            _check_manifest(path, found, spec, metadata)
            metadata = found.metadata
        self._path = path
        self._spec = spec
        self._metadata = metadata or {}
        self._sync = options.sync
        self._overwrite = overwrite
        self._keep_for = keep_for
        self._place = None if shard is None else _place(found, shard, run)
        self._is_new = found is None or overwrite
        self._is_alone = not append and not overwrite and shard is None
        self._failure: StorageError | None = None
        self._is_atomic = is_atomic or overwrite or shard is not None
        self._next_commit = 0.0
        self._lease = Lease(path)
        if self._place is None:
            self._lease.report()
        else:
            with atomic.locked(path):
                drop(path, self._place, sync=self._sync)
        self.rows = 0
        numbers = [0] if self._place is None else [self._place.number, 0]
        if found is not None and self._place is None and not overwrite:
            self.rows = sum(one.rows for one in found.shards)
            numbers = [len(found.shards)]
        names = names_of(self._lease.token, *numbers)
        self._shards = ShardWriter(path, names, spec, json_of(self._metadata), options)

    @staticmethod
    def fields(path: Path) -> dict[str, str]:
        """Return the fields of a data set and their types.

        Raises:
            FileNotFoundError: The directory holds no data set.
        """
        found = Manifest.find(path)
        if found is None:
            raise none_at(path)
        return found.spec

    @property
    def num_rows(self) -> int:
        """How many rows it has, without those of other writers."""
        return self.rows + self._shards.num_rows

    @property
    def nbytes(self) -> int:
        """The size of the rows that were appended, before compression."""
        return self._shards.nbytes

    def append(self, stored: Sequence[Cells]) -> None:
        """Append an encoded row; commit full files from time to time."""
        self._check_sound()
        self._shards.append(stored)
        self._commit_full()

    def extend(self, rows: PackedRows) -> None:
        """Append rows as they are stored."""
        self._check_sound()
        self._shards.extend(rows)
        self._commit_full()

    def _commit_full(self) -> None:
        if self._shards.finished and not self._is_atomic and monotonic() >= self._next_commit:
            self._commit()
            self._next_commit = monotonic() + _PAUSE_S

    def flush(self) -> None:
        """Commit the rows.

        Raises:
            ValueError: This is one of several writers, which commit when all have finished.
        """
        if self._place is not None:
            message = (
                f"{self._path}: cannot flush: the rows of writer {self._place.number} of "
                f"{self._place.total} are committed when all writers have closed"
            )
            raise ValueError(message)
        self._check_sound()
        self._shards.finish()
        if self._shards.finished:
            self._commit()

    def _check_sound(self) -> None:
        """Refuse to continue after a failed commit: a second attempt could hide the failure."""
        if self._failure is not None:
            message = f"{self._failure}; this writer cannot continue, open a new one"
            raise StorageError(message, str(self._path), errno=self._failure.errno)

    def _commit(self) -> None:
        """Commit the finished files; a second call has no effect."""
        shards = tuple(self._shards.finished)
        try:
            with atomic.locked(self._path):
                found = Manifest.find(self._path)
                is_first = found is None or not set(shards).isdisjoint(found.shards)
                others = self._is_new and self._is_alone and not is_first
                for one in shards:
                    _check_there(one, self._path)
                if found is not None and self._overwrite:
                    old = {one.name for one in found.shards if one not in shards}
                    superseded.supersede(self._path, old, self._keep_for, sync=self._sync)
                new = Manifest(dict(self._spec), shards, self._metadata)
                new.commit(self._path, found, overwrite=self._overwrite, sync=self._sync)
                # An interrupt comes before or after this line.
                self._shards.finished, self._overwrite, self._is_new = [], False, False
                superseded.clear(self._path)
        except StorageError as error:
            self._failure = error
            raise
        if others:
            warnings.warn(
                f"{self._path}: another writer has made a data set here meanwhile; these rows "
                "come after its rows. Pass append=True if that is what you want",
                stacklevel=4,
            )

    def close(self) -> None:
        """Commit the rows, or leave them for the last writer to commit.

        If this raises, another call continues it.
        """
        self._check_sound()
        if self._place is None:
            self._shards.finish(at_least_one=self._is_new)
            self.flush()
        else:
            self._shards.finish(at_least_one=self._place.number == 0)
            self._leave(self._place)
        self._end()

    def _leave(self, place: Place) -> None:
        """Leave the finished files as a part, and commit it if it is the last one."""
        shards = tuple(self._shards.finished)
        with atomic.locked(self._path):
            found = Manifest.find(self._path)
            if found is not None and place.run in found.runs:
                if not set(shards) <= set(found.shards):
                    warnings.warn(
                        f"{self._path}: the rows of {place.title} are committed, with those of "
                        f"another writer {place.number}; these rows are not included, and "
                        "nothing needs to be done",
                        stacklevel=4,
                    )
                return
            old = Contribution.find(self._path, place)
            if old is None or old.shards != shards:
                for one in shards:
                    _check_there(one, self._path)
                drop(self._path, place, sync=self._sync)
                new = Contribution(dict(self._spec), shards, self._metadata, self._overwrite)
                new.leave(self._path, place, sync=self._sync)
            join(self._path, place, found, self._keep_for, sync=self._sync)

    def drop(self) -> str:
        """Commit the rows, unless the writer is atomic; return a description of the data set."""
        why = ""
        try:
            if not self._is_atomic and self._failure is None:
                self.flush()
        except (OSError, FormatError) as error:
            why = f" ({error})"
        return self.abandon() + why

    def abandon(self) -> str:
        """Commit nothing more; return a description of the data set.

        Listed files stay: a commit may have been interrupted after it took effect. Full files are
        committed first, unless the writer is atomic.
        """
        self._shards.drop()  # This makes room for the manifest on a full disk.
        why = ""
        if self._shards.finished and not self._is_atomic and self._failure is None:
            try:
                self._commit()
            except (OSError, FormatError) as error:
                why = f" ({error})"
        self._shards.abandon()
        self._end()
        found = Manifest.find(self._path)
        if found is None:
            self._remove_folder()
            return f"no rows are committed; the files of this writer were removed{why}"
        rows = sum(shard.rows for shard in found.shards)
        if self._overwrite:
            return f"the data set is as it was, with {counted(rows, 'row')}{why}"
        return (
            f"{counted(rows, 'row')} {'is' if rows == 1 else 'are'} committed{why}; "
            f"DatasetWriter(path, spec, append=True) appends to {'it' if rows == 1 else 'them'}"
        )

    def _remove_folder(self) -> None:
        """Remove the directory if this writer made it and it is empty."""
        if self._makes_folder:
            with suppress(OSError):
                self._path.rmdir()

    def _end(self) -> None:
        """Remove the files of this writer that are listed nowhere, and its lease."""
        part = None if self._place is None else Contribution.find(self._path, self._place)
        self._lease.remove_unlisted(shard.name for shard in (part.shards if part else ()))
        self._lease.release()


def _check_there(shard: Shard, folder: Path) -> None:
    """Refuse to commit a file that was removed or changed, by a StorageError."""
    try:
        shard.check(folder)
    except (FileNotFoundError, CorruptFileError) as error:
        path = str(folder / shard.name)
        message = f"{path}: the file was removed or changed before its rows were committed"
        raise StorageError(message, path) from error


def _check_manifest(
    path: Path, found: Manifest, spec: Spec, metadata: dict[str, Any] | None
) -> None:
    if found.spec != dict(spec):
        message = f"{path}: the data set has the fields {found.spec}, got {dict(spec)}"
        raise ValueError(message)
    check_metadata(path, found.metadata, metadata)


def _check_uncommitted(
    path: Path, found: Manifest, shard: tuple[int, int], run: str | None, *, is_next: bool
) -> None:
    """Refuse a writer whose run is committed.

    Args:
        path: The directory.
        found: The data set.
        shard: The number of the writer, and the number of writers.
        run: The name of the run.
        is_next: Whether a writer without a run name belongs to the next run.

    Raises:
        FileExistsError: The run is committed.
    """
    place = Place("0" if run is None else run, *shard)
    if place.run in found.runs and not (run is None and is_next):
        message = (
            f"{path}: the rows of {place.title} are committed already, with those of another "
            f"writer {place.number}; nothing needs to be done"
        )
        raise FileExistsError(message)


def _place(found: Manifest | None, shard: tuple[int, int], run: str | None) -> Place:
    runs = found.runs if found else ()
    unnamed = str(sum(one.isdigit() for one in runs))
    return Place(unnamed if run is None else run, *shard)


def check_vacant(folder: Path) -> None:
    """Refuse a directory that holds other records, which a data set would hide.

    Raises:
        FileExistsError: It holds other records.
    """
    if not folder.is_dir() or (folder / NAME).exists():
        return
    for one in FORMATS:
        if any((folder / mark).exists() for mark in one.marks):
            message = f"{folder}: this is {one.title}; choose another directory"
            raise FileExistsError(message)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIXES) and not is_shard(entry.name):
                message = (
                    f"{folder}: {entry.name} in this directory is not part of a data set, "
                    "which would hide it; choose another directory"
                )
                raise FileExistsError(message)
