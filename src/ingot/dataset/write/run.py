"""The commit of a run: of several writers that fill one data set."""

import os
from pathlib import Path

from ingot.dataset import atomic
from ingot.dataset.manifest import Manifest
from ingot.dataset.write import contribution
from ingot.dataset.write.contribution import Place
from ingot.dataset.write.lease import Lease
from ingot.records.expand import absolute


def join(folder: Path, lease: Lease, place: Place, *, sync: bool) -> None:
    """Commit a group of writers if all have finished, and remove what is no longer needed.

    The directory must be locked.
    """
    found = contribution.gather(folder, place)
    if found is None:
        return
    joined, overwrite = found
    superseded = lease.take_over(Manifest.names(folder) if overwrite else [])
    joined.commit(folder, overwrite=overwrite, sync=sync)
    lease.remove(superseded)
    for one in contribution.group(folder, place):
        (folder / one.name).unlink()


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
            groups = {(one.run, one.total): one for one in contribution.places(folder)}
            for place in groups.values():
                _check_finished(folder, place)
            for place in groups.values():
                join(folder, lease, place, sync=True)
    finally:
        lease.release()


def _check_finished(folder: Path, place: Place) -> None:
    finished = {one.number for one in contribution.group(folder, place)}
    missing = sorted(set(range(place.total)) - finished)
    if missing:
        listed = ", ".join(map(str, missing[:10])) + ", ..." * (len(missing) > 10)  # noqa: PLR2004
        message = (
            f"{folder}: of the {place.total} writers of the run {place.run!r} these have not "
            f"finished: {listed}"
        )
        raise ValueError(message)
