"""Sequences of varying length: an array of one object, which is an array, as in HDF5."""

from collections.abc import Sequence
from importlib import import_module
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


def torch_dataset() -> type:
    """Return PyTorch's `Dataset` class, and register sequences with its loader.

    Without PyTorch, return `object`.
    """
    try:
        data = import_module("torch.utils.data")
    except ModuleNotFoundError:
        return object
    known = import_module("torch.utils.data._utils.collate").default_collate_fn_map
    known[Runs] = _tensors
    found: type = data.Dataset
    return found


def _tensors(batch: list[Runs], *, collate_fn_map: object = None) -> list[Any]:
    """Return the numbers of each row as a tensor."""
    del collate_fn_map
    torch = import_module("torch")
    return [torch.as_tensor(row[0]) for row in batch]
