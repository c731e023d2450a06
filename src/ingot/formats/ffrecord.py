"""FFRecord files: a reader with access to their indices, and a writer."""

import json
from typing import Self

import numpy as np
import numpy.typing as npt

from ingot._core import RecordWriter, decode_tree, write_ffrecord
from ingot.records.exit import Abandonable
from ingot.records.expand import StrPath, absolute
from ingot.records.reader import Reader

__all__ = ["FFRecordReader", "FFRecordWriter", "decode_tree"]


class FFRecordReader(Reader):
    """FFRecord files, open for reading, as `ingot.open` opens them.

    It also returns what their indices hold.

    Args:
        source: As for `ingot.open`.
        verify: Whether to verify the checksums of indices and records.
    """

    def offsets(self, file: int) -> npt.NDArray[np.int64]:
        """Return where each record of a file begins."""
        return np.frombuffer(self._layout(file)[0], np.int64)

    def checksums(self, file: int) -> npt.NDArray[np.uint32]:
        """Return the CRC-32 of each record of a file."""
        return np.frombuffer(self._layout(file)[1], np.uint32)

    def is_intact(self, file: int) -> bool:
        """Return whether the checksum of the index of a file matches."""
        return bool(json.loads(self._info(file))["intact"])

    def legacy_files(self) -> list[int]:
        """Return the files whose index has no checksum."""
        files = range(len(self.paths))
        return [file for file in files if json.loads(self._info(file)).get("legacy")]


class FFRecordWriter(RecordWriter, Abandonable):
    """Writes an FFRecord file that FFRecord itself can read.

    The file appears under its name when it is closed, and replaces an existing file. An
    exception inside `with` leaves everything as it was.

    Args:
        path: The file to write.
        n: The number of records; None for any number, which then wait in a second file.
        sync: Whether `close` waits until the file is on the storage device.

    Example:
        >>> with FFRecordWriter("x.ffr") as w:  # doctest: +SKIP
        ...     w.append(b"a record")
    """

    def __new__(cls, path: StrPath, n: int | None = None, *, sync: bool = False) -> Self:
        """Open the file; see the class."""
        return super().__new__(cls, write_ffrecord(str(absolute(path)), n, sync))
