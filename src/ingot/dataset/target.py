"""Where the rows of a data set go: one file, or a directory of several."""

import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ingot._core import Rows as NativeRows
from ingot._core import has_fields
from ingot.dataset import folder as folders
from ingot.dataset import part
from ingot.dataset.journal import check_not_built
from ingot.dataset.manifest import NAME, Manifest
from ingot.dataset.owner import Owner
from ingot.dataset.part import Part, Place
from ingot.dataset.row import Stored
from ingot.dataset.shards import Options, ShardWriter, names_of
from ingot.dataset.spec import Spec
from ingot.dataset.vacancy import check_vacant
from ingot.errors import FormatError


class FileTarget:
    """A data set in one file.

    Attributes:
        rows: How many rows it has to begin with.
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
    ) -> None:
        self._mode = "append" if append and path.exists() else "create"
        self._mode = "replace" if overwrite else self._mode
        if self._mode == "append":
            _check_file(path, spec, metadata)
        try:
            self._writer = options.open(path, self._mode, json_of(metadata or {}), spec)
        except FileExistsError as error:
            error.add_note(
                "pass append=True to go on at its end, or overwrite=True to replace it once "
                "the new file is closed"
            )
            raise
        self.rows = len(self._writer)

    def append(self, stored: Sequence[Stored], _nbytes: int) -> None:
        """Add a row that is encoded."""
        self._writer.append_row(stored)

    def flush(self) -> None:
        """Commit the rows."""
        self._writer.flush()

    def close(self) -> None:
        """Commit the rows and make the file whole."""
        self._writer.close()

    def abandon(self) -> str:
        """Commit nothing more; return what there is now."""
        committed = self._writer.abandon()
        if self._mode == "replace":
            return "the new file was not finished; what was there before stays"
        if self._mode == "create" and committed == 0:
            return "nothing was committed; the file was removed"
        return (
            f"left unfinished with {committed} committed rows; ingot.open(path, partial=True) "
            "reads them, DatasetWriter(path, spec, append=True) goes on behind them, "
            "ingot.recover(path) makes the file whole"
        )


def _check_file(path: Path, spec: Spec, metadata: dict[str, Any] | None) -> None:
    if not has_fields(str(path)):
        message = f"{path}: this is no data set, or its writer died before the first row"
        raise FormatError(message, str(path))
    rows = NativeRows([str(path)], partial=True)
    if rows.fields() != spec.stored():
        fields = {name: kind for name, _, _, kind in rows.fields()}
        message = f"{path}: the file has the fields {fields}, not {dict(spec)}"
        raise ValueError(message)
    _check_metadata(path, json.loads(rows.metadata_json()), metadata)


def _check_metadata(path: Path, found: dict[str, Any], given: dict[str, Any] | None) -> None:
    if given is not None and json.loads(json_of(given)) != found:
        message = f"{path}: append=True goes on with the metadata {found!r:.200}; leave it out"
        raise ValueError(message)


def json_of(metadata: object) -> str:
    """Return metadata as JSON.

    Raises:
        TypeError: It is no dict, or JSON has no word for something in it.
        ValueError: A number in it is none, or it is too deep.
    """
    if not isinstance(metadata, dict):
        message = f"metadata is a dict, not {type(metadata).__name__}"
        raise TypeError(message)
    try:
        return json.dumps(metadata, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"metadata is what JSON can say: {error}"
        raise (TypeError if isinstance(error, TypeError) else ValueError)(message) from error


class DirectoryTarget:
    """A data set in a directory, which changes when its manifest is replaced.

    With a place it is one writer of several. What it has finished then is a part, and whoever
    finishes last commits all parts.

    Attributes:
        rows: How many rows it has to begin with; those of other writers do not count.
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
        shard: tuple[int, int] | None = None,
        run: str | None = None,
    ) -> None:
        check_vacant(path)
        check_not_built(path)
        path.mkdir(parents=True, exist_ok=True)
        found = Manifest.find(path)
        if found is not None and not append and not overwrite:
            message = (
                f"{path}: there is a data set already; pass append=True to go on with it, or "
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
        self._place = None if shard is None else _place(path, found, shard, run)
        self._is_new = found is None or overwrite
        self._owner = Owner(path)
        if self._place is None:
            self._owner.report()
        self.rows = 0
        numbers = [0] if self._place is None else [self._place.number, 0]
        if found is not None and self._place is None and not overwrite:
            self.rows = sum(one.rows for one in found.shards)
            numbers = [len(found.shards)]
        names = names_of(self._owner.token, *numbers)
        self._shards = ShardWriter(path, names, spec, json_of(self._metadata), options)

    def append(self, stored: Sequence[Stored], nbytes: int) -> None:
        """Add a row that is encoded."""
        self._shards.append(stored, nbytes)

    def flush(self) -> None:
        """Commit the rows.

        Raises:
            ValueError: This is one of several writers, which commit when all have finished.
        """
        if self._place is not None:
            message = (
                f"{self._path}: the rows of writer {self._place.number} of {self._place.total} "
                "are committed when all of them have closed; it cannot flush"
            )
            raise ValueError(message)
        self._shards.finish()
        if not self._shards.finished:
            return
        with folders.locked(self._path):
            superseded = self._owner.take_over(_names_in(self._path) if self._overwrite else [])
            new = Manifest(dict(self._spec), tuple(self._shards.finished), self._metadata)
            new.commit(self._path, overwrite=self._overwrite, sync=self._sync)
        self._shards.finished, self._overwrite, self._is_new = [], False, False
        self._owner.remove(superseded)

    def close(self) -> None:
        """Commit the rows, or leave them for the last writer to commit."""
        if self._place is None:
            self._shards.finish(at_least_one=self._is_new)
            self.flush()
        else:
            self._shards.finish(at_least_one=self._place.number == 0)
            self._leave(self._place)
        self._owner.release()

    def _leave(self, place: Place) -> None:
        with folders.locked(self._path):
            found = Manifest.find(self._path)
            if found is not None and place.run in found.runs:
                self._owner.remove(self._shards.abandon())
                warnings.warn(
                    f"{self._path}: the run {place.run!r} was committed with what another writer "
                    f"{place.number} of {place.total} has made; these rows were left out",
                    stacklevel=4,
                )
                return
            old = Part.find(self._path, place)
            superseded = self._owner.take_over(_own(old, place, found) if old else [])
            shards = tuple(self._shards.finished)
            new = Part(dict(self._spec), shards, self._metadata, self._overwrite)
            new.leave(self._path, place, sync=self._sync)
            self._shards.finished = []
            self._owner.remove(superseded)
            join(self._path, self._owner, place, sync=self._sync)

    def abandon(self) -> str:
        """Commit nothing more; return what there is now.

        What is listed stays: a commit may have been interrupted behind the point of no return.
        """
        listed = set(_names_in(self._path))
        if self._place is not None and (part := Part.find(self._path, self._place)):
            listed |= {shard.name for shard in part.shards}
        self._shards.abandon()
        self._owner.remove_unlisted(listed)
        self._owner.release()
        if (self._path / NAME).exists():
            return "the data set is as the last flush left it"
        return "nothing is committed; the files of this writer were removed"


def _own(part: Part, place: Place, manifest: Manifest | None) -> list[str]:
    """Return the files of a part that no other part and no manifest lists."""
    committed = {shard.name for shard in manifest.shards} if manifest else set()
    names = [shard.name for shard in part.shards if shard.name not in committed]
    return [name for name in names if name.startswith(f"{place.number:05}-")]


def join(folder: Path, owner: Owner, place: Place, *, sync: bool) -> None:
    """Commit a group of writers if all have finished, and remove what is not needed any more.

    The directory must be locked.
    """
    found = part.gather(folder, place)
    if found is None:
        return
    joined, overwrite = found
    superseded = owner.take_over(_names_in(folder) if overwrite else [])
    joined.commit(folder, overwrite=overwrite, sync=sync)
    owner.remove(superseded)
    for one in part.group(folder, place):
        (folder / one.name).unlink()


def commit(path: str | os.PathLike[str]) -> None:
    """Commit what the writers of a data set with `shard=(number, total)` have finished.

    The last of them does so by itself. This is for the case that it was killed just then,
    between leaving its part and committing all.

    Raises:
        ValueError: Some of the writers have not finished.
    """
    folder = Path(path).absolute()
    owner = Owner(folder)
    try:
        with folders.locked(folder):
            groups = {(one.run, one.total): one for one in part.places(folder)}
            for place in groups.values():
                _check_finished(folder, place)
            for place in groups.values():
                join(folder, owner, place, sync=True)
    finally:
        owner.release()


def _check_finished(folder: Path, place: Place) -> None:
    finished = {one.number for one in part.group(folder, place)}
    missing = sorted(set(range(place.total)) - finished)
    if missing:
        listed = ", ".join(map(str, missing[:10])) + ", ..." * (len(missing) > 10)  # noqa: PLR2004
        message = (
            f"{folder}: of the {place.total} writers of the run {place.run!r} these have not "
            f"finished: {listed}"
        )
        raise ValueError(message)


def _names_in(folder: Path) -> list[str]:
    found = Manifest.find(folder)
    return [shard.name for shard in found.shards] if found else []


def _check_manifest(
    path: Path, found: Manifest, spec: Spec, metadata: dict[str, Any] | None
) -> None:
    if found.spec != dict(spec):
        message = f"{path}: the data set has the fields {found.spec}, not {dict(spec)}"
        raise ValueError(message)
    _check_metadata(path, found.metadata, metadata)


def _place(path: Path, found: Manifest | None, shard: tuple[int, int], run: str | None) -> Place:
    runs = found.runs if found else ()
    if run is not None and run in runs:
        message = f"{path}: the run {run!r} is committed already"
        raise FileExistsError(message)
    unnamed = str(sum(one.isdigit() for one in runs))
    return Place(unnamed if run is None else run, *shard)
