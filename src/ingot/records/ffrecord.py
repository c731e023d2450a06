"""FFRecord files, with what users of FFRecord need. Others use `ingot.open`."""

import numpy as np
import numpy.typing as npt

from ingot._core import FFRecordWriter, decode_tree
from ingot.records.reader import Reader

__all__ = ["FFRecordReader", "FFRecordWriter", "decode_tree"]


class FFRecordReader(Reader):
    """FFRecord files, open for reading, with access to their indices."""

    def offsets(self, file: int) -> npt.NDArray[np.int64]:
        """Return where each record of a file begins."""
        return np.frombuffer(self._ffrecord_index(file)[0], np.int64)

    def checksums(self, file: int) -> npt.NDArray[np.uint32]:
        """Return the CRC-32 of each record of a file."""
        return np.frombuffer(self._ffrecord_index(file)[1], np.uint32)

    def is_intact(self, file: int) -> bool:
        """Return whether the checksum of the index of a file matches."""
        return self._ffrecord_index(file)[2]

    def legacy_files(self) -> list[int]:
        """Return the files whose index has no checksum."""
        return self._ffrecord_legacy()
