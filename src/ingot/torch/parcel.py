"""How a batch travels from a worker process to the training loop.

PyTorch puts each tensor into shared memory of its own and passes a file descriptor, which costs
the receiver as much as half a megabyte through the pipe. So small tensors go through the pipe.
"""

from collections.abc import Callable
from typing import Any

import torch

from ingot.loader.leaves import each_array
from ingot.loader.tensors import tensors

_PIPED_BYTES_MAX = 256 << 10
_PIPED_TYPES = {
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
}


def as_tensors(batch: Any) -> Any:
    """Turn the arrays of a batch into tensors."""
    return tensors(pin_memory=False)(batch)


class Parcel:
    """A batch on its way: what is unpickled of it is the batch, as tensors."""

    def __init__(self, batch: Any) -> None:
        self._batch = each_array(batch, _piped)

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return as_tensors, (self._batch,)


def _piped(value: Any) -> Any:
    """Return a small tensor as an array, and anything else as it is."""
    if type(value) is not torch.Tensor or value.nbytes > _PIPED_BYTES_MAX:
        return value
    is_plain = value.is_cpu and value.layout is torch.strided and value.dtype in _PIPED_TYPES
    return value.numpy() if is_plain and not value.requires_grad and not value.is_neg() else value
