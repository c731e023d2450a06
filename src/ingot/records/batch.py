"""Records that share one block of memory."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ingot.errors import counted


class Batch(Sequence[npt.NDArray[np.uint8]]):
    """Records in one block of memory; item `k` is a view on the `k`-th of them.

    Attributes:
        data: All records, concatenated, as one array of bytes.
        offsets: Where each record begins in `data`, and where the last one ends.
        record_bytes: The length of every record, or 0 if they differ. If it is not 0,
            `data.reshape(-1, record_bytes)` has one row per record.
    """

    __slots__ = ("data", "offsets", "record_bytes")
    __module__ = "ingot"

    def __init__(
        self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], record_bytes: int = 0
    ) -> None:
        self.data = data
        self.offsets = offsets
        self.record_bytes = record_bytes

    def __iter__(self) -> Iterator[npt.NDArray[np.uint8]]:
        if self.record_bytes:
            return iter(self.data.reshape(-1, self.record_bytes))
        return (self.data[start:end] for start, end in pairwise(self.offsets.tolist()))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> npt.NDArray[np.uint8]: ...
    @overload
    def __getitem__(self, index: slice) -> list[npt.NDArray[np.uint8]]: ...
    def __getitem__(
        self, index: SupportsIndex | slice
    ) -> npt.NDArray[np.uint8] | list[npt.NDArray[np.uint8]]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        k = range(len(self))[index]
        return self.data[self.offsets[k] : self.offsets[k + 1]]

    def __repr__(self) -> str:
        return f"<ingot.Batch of {counted(len(self), 'record')}, {counted(len(self.data), 'byte')}>"
