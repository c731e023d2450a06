"""Memory that a framework takes over."""

from typing import Any

import numpy as np
import numpy.typing as npt

_ALIGNMENT = 64


def own_copy(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a copy that nobody else holds, aligned so that it need not be copied again.

    On the CPU, JAX and TensorFlow use the memory of an aligned array for as long as their own
    array lives. So they must not get an array that somebody may write to.
    """
    size = array.size * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    own = memory[start : start + size].view(dtype).reshape(array.shape)
    with np.errstate(over="ignore"):  # What is too large for float32 is infinite, as in JAX.
        np.copyto(own, array, casting="unsafe")
    return own
