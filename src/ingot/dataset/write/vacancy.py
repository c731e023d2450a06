"""Whether a directory may become a data set, or holds something else."""

import os
import re
from pathlib import Path

from ingot.dataset.manifest import NAME
from ingot.dataset.read.granular import layout
from ingot.records.expand import SUFFIXES

_SHARD = re.compile(r"(?:[0-9]{5,}-)?[0-9]{6,}-[^.]+\.ingot")


def is_shard(name: str) -> bool:
    """Return whether a file has a name that writers of a directory give."""
    return _SHARD.fullmatch(name) is not None


def check_vacant(folder: Path) -> None:
    """Refuse a directory that holds other records, which a data set would hide.

    Raises:
        FileExistsError: It does.
    """
    if not folder.is_dir() or (folder / NAME).exists():
        return
    if layout.is_dataset(folder) or layout.is_sharded(folder):
        message = f"{folder}: this is a Granular data set; choose another directory"
        raise FileExistsError(message)
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIXES) and not is_shard(entry.name):
                message = (
                    f"{folder}: {entry.name} in this directory is not part of a data set, "
                    "which would hide it; choose another directory"
                )
                raise FileExistsError(message)
