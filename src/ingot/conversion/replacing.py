"""What may be replaced by a new target: a file, or a data set directory with nothing else in it."""

import errno
import os
from pathlib import Path

from ingot.dataset.manifest import NAME, is_shard
from ingot.formats.granular import layout

_GRANULAR = (".bag", ".idx", ".json")


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse a target that exists, unless it may be replaced.

    Raises:
        FileExistsError: There is one, and `overwrite` is not given, or it is a directory that
            holds other files than those of a data set.
    """
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise taken(target)
    other = _foreign(target) if target.is_dir() else None
    if other is not None:
        note = f"is not a data set directory alone: it holds {other.name}; choose another target"
        raise FileExistsError(errno.EEXIST, note, str(target))


def taken(target: Path) -> FileExistsError:
    """Return the error for a target that exists."""
    note = "exists; pass overwrite=True to replace it once the new one is finished"
    return FileExistsError(errno.EEXIST, note, str(target))


def _foreign(folder: Path) -> Path | None:
    """Return a file that is not of a data set; hidden ones are of its writers."""
    files = [one for one in folder.rglob("*") if not one.is_dir() and one.name[0] != "."]
    if layout.is_dataset(folder) or layout.is_sharded(folder):
        return next((one for one in files if one.suffix not in _GRANULAR), None)
    is_own = (folder / NAME).is_file()
    for one in files:
        if not (is_own and one.parent == folder and (one.name == NAME or is_shard(one.name))):
            return one
    return None
