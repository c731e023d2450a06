"""Numbers that vary in count: an array of one object, which is an array, as HDF5 has it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class Runs(np.ndarray[tuple[int, ...], np.dtype[np.object_]]):
    """An array whose elements are arrays.

    PyTorch's `default_collate` makes a list of tensors of it, one for each row.
    """


def runs_of(values: Sequence[npt.NDArray[Any]]) -> Runs:
    """Return an array of one axis whose elements are the values."""
    found = np.empty(len(values), object).view(Runs)
    for k, value in enumerate(values):
        found[k] = value
    return found
