"""`ffrecord.fileio`: readers, writers, and file system checks."""

import fcntl
import struct

from ingot.compat.ffrecord.reader import FileReader
from ingot.compat.ffrecord.writer import FileWriter

__all__ = ["FileReader", "FileWriter", "checkFsAlign"]

_ALIGNS = 0x80046664


def checkFsAlign(fd: int) -> bool:  # noqa: N802
    """Return whether the file system of a descriptor aligns reads by itself."""
    answer = bytearray(4)
    try:
        failed = fcntl.ioctl(fd, _ALIGNS, answer)
    except (OSError, ValueError):
        return False
    return failed == 0 and struct.unpack("=I", answer) == (1,)
