"""Sequences of varying length: an array of one object, which is an array, as in HDF5."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class Runs(np.ndarray[tuple[int, ...], np.dtype[np.object_]]):
    """An array whose elements are arrays.

    PyTorch's `default_collate` converts it to a list of tensors, one per row.
    """


def runs_of(values: Sequence[npt.NDArray[Any]]) -> Runs:
    """Return a one-dimensional array whose elements are the values."""
    found = np.empty(len(values), object).view(Runs)
    for k, value in enumerate(values):
        found[k] = value
    return found
