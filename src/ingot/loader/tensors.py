"""Batches as tensors of PyTorch."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.extras import requirement
from ingot.loader.leaves import each_array

_TYPES = "?bBhHiIlLqQefdFD"


def tensors(*, pin_memory: bool) -> Callable[[Any], Any]:
    """Return a function that turns the arrays of a batch into tensors.

    Arrays that PyTorch cannot use as they are, such as those that are read-only, are copied.

    Args:
        pin_memory: Whether to copy them into pinned memory, from which a GPU can fetch them;
            without a GPU, they stay where they are.

    Raises:
        ModuleNotFoundError: PyTorch is not installed.
    """
    with requirement("torch", 'to="torch"'):
        import torch  # noqa: PLC0415 -- only those who ask for tensors need it

    pins = pin_memory and torch.cuda.is_available()

    def tensor(value: Any) -> Any:
        if _is_numeric(value):
            is_usable = value.flags.writeable and value.dtype.isnative
            if not is_usable or min(value.strides, default=0) < 0:
                value = value.astype(value.dtype.newbyteorder("="), order="C")
            value = torch.from_numpy(value)
        return value.pin_memory() if pins and isinstance(value, torch.Tensor) else value

    return lambda batch: each_array(batch, tensor)


def _is_numeric(value: Any) -> bool:
    """Whether a value is an array of numbers that PyTorch has, without a mask."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        return False
    return value.dtype.char in _TYPES


def is_plain_tensor(one: Any) -> bool:
    """Whether a value is a tensor of PyTorch in ordinary memory, without a gradient."""
    torch = sys.modules.get("torch")
    if torch is None or type(one) is not torch.Tensor:
        return False
    return one.device.type == "cpu" and one.layout is torch.strided and not one.requires_grad


def bytes_of(tensor: Any) -> npt.NDArray[np.uint8]:
    """Return the memory of a plain tensor of any type, copied only where it has gaps."""
    plain = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1)
    array: npt.NDArray[np.uint8] = plain.view(sys.modules["torch"].uint8).numpy()
    return array


def tensor_of(content: npt.NDArray[np.uint8], dtype: Any, shape: tuple[int, ...]) -> Any:
    """Return the tensor whose memory `bytes_of` has returned."""
    import torch  # noqa: PLC0415 -- the process that made the tensor had it

    return torch.from_numpy(content).view(dtype).reshape(shape)
