"""Conversion of numbers to another dtype that preserves their values."""

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
        message = f"{_first(array, ~fits)} cannot be stored as {dtype}{_advice(array, dtype)}"
        raise ValueError(message)
    return found


def _first(array: npt.NDArray[Any], wrong: npt.NDArray[np.bool_]) -> object:
    found: object = array[wrong].reshape(-1)[0].item()
    return found


def _advice(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> str:
    if dtype == np.uint8 and array.dtype.kind == "f" and array.max(initial=0) <= 1:
        return ": convert pixels from 0 to 1 with (image * 255).round().astype('uint8')"
    return ""
