"""Values in their stored form: numbers of another dtype, and sequences of varying length."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt


def exact(value: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert numbers to a dtype.

    Floating-point numbers may be rounded. Integers may not, and nothing may become infinite.

    Raises:
        TypeError: They are not numbers.
        ValueError: They do not fit.
    """
    if hasattr(value, "detach"):  # A tensor, which may be on another device or part of a graph.
        value = value.detach().cpu()
    array = np.asarray(value)
    if array.dtype == dtype:
        return array
    if array.dtype.kind not in "biuf":
        message = f"expected numbers, got {type(value).__name__}"
        raise TypeError(message)
    with np.errstate(all="ignore"):
        found = array.astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        fits = (array >= limits.min) & (array <= limits.max) & (found == array)
    else:
        fits = np.isfinite(found) | ~np.isfinite(array)
        if array.dtype.kind in "iu":
            with np.errstate(all="ignore"):
                fits &= found.astype(array.dtype) == array
    if not fits.all():
        message = f"{array[~fits].reshape(-1)[0].item()} cannot be stored as {dtype}"
        if dtype == np.uint8 and array.dtype.kind == "f" and array.max(initial=0) <= 1:
            message += ": convert pixels from 0 to 1 with (image * 255).round().astype('uint8')"
        raise ValueError(message)
    return found


class Runs(np.ndarray[tuple[int, ...], np.dtype[np.object_]]):
    """An array of objects, which are arrays, as HDF5 has sequences of varying length.

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
