"""The commit of a run: of several writers that fill one data set."""

import os
from pathlib import Path

from ingot.dataset import atomic
from ingot.dataset.manifest import Manifest
from ingot.dataset.place import Place, group, places, unfinished
from ingot.dataset.write import contribution, superseded
from ingot.dataset.write.contribution import Contribution
from ingot.dataset.write.lease import Lease
from ingot.records.expand import absolute


def drop(folder: Path, place: Place, *, sync: bool) -> None:
    """Remove the parts of a run that a writer replaces; the directory must be locked.

    Those are its own, which an earlier attempt has left, and all parts of another number of
    writers, which can never be committed together with its own.
    """
    old = [
        one
        for one in places(folder)
        if one.run == place.run and (one.number == place.number or one.total != place.total)
    ]
    committed = Manifest.names(folder) if old else set()
    names = [name for one in old for name in _own(folder, one) if name not in committed]
    superseded.supersede(folder, names, 0, sync=sync)
    for one in old:
        (folder / one.name).unlink(missing_ok=True)
    superseded.clear(folder)


def _own(folder: Path, place: Place) -> list[str]:
    """Return the files of a part that no other part lists."""
    part = Contribution.find(folder, place)
    names = [shard.name for shard in part.shards] if part else []
    return [name for name in names if name.startswith(f"{place.number:05}-")]


def join(
    folder: Path, place: Place, found: Manifest | None, keep_for: float, *, sync: bool
) -> None:
    """Commit a group of writers if all have finished, and remove what is not needed any more.

    Args:
        folder: The directory, which must be locked.
        place: One of the writers.
        found: The manifest of the directory, as read since it was locked.
        keep_for: For how many seconds the files of a data set stay that the group replaces.
        sync: Whether to wait until the storage device has the bytes.
    """
    gathered = contribution.gather(folder, place)
    if gathered is None:
        return
    joined, overwrite = gathered
    old = {shard.name for shard in found.shards} if found is not None and overwrite else set()
    superseded.supersede(folder, old, keep_for, sync=sync)
    joined.commit(folder, found, overwrite=overwrite, sync=sync)
    superseded.clear(folder)
    for one in group(folder, place):
        (folder / one.name).unlink(missing_ok=True)


def commit(path: str | os.PathLike[str]) -> None:
    """Commit what the writers of a data set with `shard=(number, total)` have finished.

    Normally the last writer does this. Call it if that writer was killed after it left its
    part and before it committed.

    Raises:
        ValueError: Some of the writers have not finished.
    """
    folder = absolute(path)
    lease = Lease(folder)
    try:
        with atomic.locked(folder):
            if missing := unfinished(folder):
                message = f"{folder}: {missing}"
                raise ValueError(message)
            for place in {(one.run, one.total): one for one in places(folder)}.values():
                found = Manifest.find(folder)
                join(folder, place, found, superseded.KEEP_S, sync=True)
    finally:
        lease.release()
