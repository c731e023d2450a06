"""Whether a directory may become a data set, or holds something else."""

import os
import re
from pathlib import Path

from ingot.dataset.granular import layout
from ingot.dataset.manifest import NAME
from ingot.records.paths import SUFFIXES

_SHARD = re.compile(r"(?:[0-9]{5,}-)?[0-9]{6,}-[^.]+\.ingot")


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
            if entry.name.endswith(SUFFIXES) and _SHARD.fullmatch(entry.name) is None:
                message = (
                    f"{folder}: {entry.name} in this directory is not part of a data set, "
                    "which would hide it; choose another directory"
                )
                raise FileExistsError(message)
