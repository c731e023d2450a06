"""Making files whole, unless they belong to a data set that knows better."""

import os

from ingot.dataset.manifest import Manifest
from ingot.errors import FormatError
from ingot.records.paths import absolute
from ingot.records.recovery import Recovery
from ingot.records.recovery import recover as recover_file


def recover(path: str | os.PathLike[str], *, force: bool = False, sync: bool = True) -> Recovery:
    """Cut an unfinished file back to its last commit and make it whole.

    Nothing that was committed is lost. A file that is whole already is left alone.

    Args:
        path: The file.
        force: Cut also a file of a data set in a directory, whose manifest says that it was
            whole: it was copied in part, or is damaged.
        sync: Whether to wait until the device has the bytes.

    Raises:
        StorageError: A writer has the file open.
        FormatError: It is not an Ingot file, is damaged beyond this, or is listed by a manifest.
    """
    file = absolute(path)
    found = None if force else Manifest.find(file.parent)
    listed = {shard.name: shard for shard in found.shards} if found else {}
    if file.name in listed and file.exists() and file.stat().st_size != listed[file.name].nbytes:
        shard = listed[file.name]
        message = (
            f"{file}: the data set in {file.parent} says that this file has {shard.nbytes:,} bytes "
            f"and {shard.rows:,} rows, not {file.stat().st_size:,} bytes: copy it again. "
            "recover(path, force=True) keeps what is there"
        )
        raise FormatError(message, str(file))
    return recover_file(file, sync=sync)
