"""Finishing unfinished files, unless a manifest lists them as finished."""

import os

from ingot.dataset.manifest import Manifest
from ingot.errors import FormatError
from ingot.records.expand import absolute
from ingot.records.recovery import Recovery
from ingot.records.recovery import recover as recover_file


def recover(path: str | os.PathLike[str], *, force: bool = False, sync: bool = True) -> Recovery:
    """Cut an unfinished file back to its last commit and finish it.

    Nothing that was committed is lost. A finished file is not changed.

    Args:
        path: The file.
        force: Also cut a file that the manifest of a data set lists as finished: it was copied
            in part, or is damaged.
        sync: Whether to wait until the bytes are on the storage device.

    Raises:
        StorageError: A writer has the file open.
        FormatError: It is not an Ingot file, is too damaged, or is listed by a manifest.
    """
    file = absolute(path)
    if file.is_dir():
        message = (
            f"{file}: a directory needs no recovery: ingot.open reads what is committed, "
            "DatasetWriter(path, append=True) appends to it; pass one of its files"
        )
        raise IsADirectoryError(message)
    found = None if force else Manifest.find(file.parent)
    listed = {shard.name: shard for shard in found.shards} if found else {}
    if file.name in listed and file.exists() and file.stat().st_size != listed[file.name].nbytes:
        shard = listed[file.name]
        message = (
            f"{file}: the data set in {file.parent} expects {shard.nbytes:,} bytes and "
            f"{shard.rows:,} rows in this file, got {file.stat().st_size:,} bytes: copy it again, "
            "or pass force=True to recover to keep the committed rows of this file"
        )
        raise FormatError(message, str(file))
    return recover_file(file, sync=sync)
