"""Writing a file that a user names: all of it, or nothing."""

import errno
import os
import secrets
import sys
from pathlib import Path

from ingot.dataset.atomic import writing


def write_file(path: str, data: bytes, *, overwrite: bool) -> None:
    """Write bytes to a file, or to standard output for `-`.

    Raises:
        IsADirectoryError: It is a directory.
        FileNotFoundError: Its directory does not exist.
        FileExistsError: The file exists, and `overwrite` is not given.
    """
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a directory; name a file in it", path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the directory of this file does not exist", path)
    if os.path.lexists(target) and not overwrite:
        raise FileExistsError(errno.EEXIST, "exists; pass --overwrite to replace it", path)
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    with writing(target):
        try:
            hidden.write_bytes(data)
            hidden.replace(target)
        finally:
            hidden.unlink(missing_ok=True)
