"""Batches as tensors of PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ingot.loader.collate import each_array

_TYPES = "?bBhHiIlLqQefdFD"


def tensors(*, pin_memory: bool) -> Callable[[Any], Any]:
    """Return a function that turns the arrays of a batch into tensors, without copying them.

    Args:
        pin_memory: Whether to copy them into pinned memory, from which a GPU can fetch them;
            without a GPU, they stay where they are.

    Raises:
        ModuleNotFoundError: PyTorch is not installed.
    """
    try:
        import torch  # noqa: PLC0415 -- only those who ask for tensors need it
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        message = 'to="torch" requires PyTorch: pip install torch'
        raise ModuleNotFoundError(message, name="torch") from error

    pins = pin_memory and torch.cuda.is_available()

    def tensor(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.char in _TYPES:
            value = value if value.flags.writeable else value.copy()
            value = torch.from_numpy(value)
        return value.pin_memory() if pins and isinstance(value, torch.Tensor) else value

    return lambda batch: each_array(batch, tensor)
