"""Records that share one block of memory."""

from collections.abc import Sequence
from typing import SupportsIndex, overload

import numpy as np
import numpy.typing as npt


class Batch(Sequence[npt.NDArray[np.uint8]]):
    """Records in one block of memory; item `k` is a view on the `k`-th of them.

    Attributes:
        data: All records, one behind the other, as one array of bytes.
        offsets: Where each begins in `data`, and where the last one ends.
    """

    __slots__ = ("data", "offsets")
    __module__ = "ingot"

    def __init__(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None:
        self.data = data
        self.offsets = offsets

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
        return f"<ingot.Batch of {len(self)} records, {len(self.data)} bytes>"
