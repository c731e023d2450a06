"""Batches as tensors of PyTorch or arrays of JAX."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.extras import requirement

_ALIGNMENT = 64
_NARROW = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
_TYPES = "?bBhHiIlLqQefdFD"


def each_leaf(
    batch: Any, change: Callable[[Any, str], Any], where: str = "batch", *, in_lists: bool = False
) -> Any:
    """Return a batch with each leaf changed by a function of it and of its place, in words.

    Args:
        batch: Dicts and tuples of leaves.
        change: The function.
        where: The place of the batch.
        in_lists: Whether the elements of lists are leaves, rather than the lists.
    """
    if isinstance(batch, Mapping):
        return {
            key: each_leaf(one, change, f"{where}[{key!r}]", in_lists=in_lists)
            for key, one in batch.items()
        }
    if isinstance(batch, tuple):
        changed = [
            each_leaf(one, change, f"{where}[{k}]", in_lists=in_lists)
            for k, one in enumerate(batch)
        ]
        return type(batch)(*changed) if hasattr(batch, "_fields") else tuple(changed)
    if in_lists and isinstance(batch, list):
        return [each_leaf(one, change, where, in_lists=True) for one in batch]
    return change(batch, where)


def own_copy(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a copy without other references, aligned so that it need not be copied again.

    On the CPU, JAX and TensorFlow use the memory of an aligned array for as long as their own
    array lives. So they must not get an array that may be written to.
    """
    size = array.size * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    own = memory[start : start + size].view(dtype).reshape(array.shape)
    with np.errstate(over="ignore"):  # What is too large for float32 is infinite, as in JAX.
        np.copyto(own, array, casting="unsafe")
    return own


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
        import torch  # noqa: PLC0415 -- only needed for tensors

    pins = pin_memory and torch.cuda.is_available()

    def tensor(value: Any, _: str) -> Any:
        if _is_numeric(value) and not isinstance(value, np.ma.MaskedArray):
            is_usable = value.flags.writeable and value.dtype.isnative
            if not is_usable or min(value.strides, default=0) < 0:
                value = value.astype(value.dtype.newbyteorder("="), order="C")
            value = torch.from_numpy(value)
        return value.pin_memory() if pins and isinstance(value, torch.Tensor) else value

    return lambda batch: each_leaf(batch, tensor, in_lists=True)


def _is_numeric(value: Any) -> bool:
    """Whether a value is an array of numbers that PyTorch and JAX have: not `longdouble`."""
    return isinstance(value, np.ndarray) and value.dtype.char in _TYPES


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


def arrays(put: Callable[[npt.NDArray[Any]], Any] | None = None) -> Callable[[Any], Any]:
    """Return a function that turns the arrays of a batch into arrays of JAX.

    Lists stay as they are. Each array is copied once, into memory that JAX takes over: on the
    CPU, JAX may use the memory of an array for as long as its own array lives. Whether there are
    64-bit types, and the default device, are as they are for the thread that calls this function.
    Without 64-bit types, numbers get 32 bits.

    Args:
        put: Makes an array of JAX from an array without other references; by default the array is
            put on the default device.

    Raises:
        ModuleNotFoundError: JAX is not installed.
    """
    with requirement("jax", 'to="jax"'):
        import jax  # noqa: PLC0415 -- only needed for its arrays

    is_wide = bool(jax.config.jax_enable_x64)
    device = jax.config.jax_default_device

    def convert(batch: Any) -> Any:
        made: list[Any] = []

        def array(value: Any, where: str) -> Any:
            is_small = isinstance(value, np.ndarray) and value.dtype.type.__module__ == "ml_dtypes"
            if not (is_small or _is_numeric(value)):
                return value
            own = _own(value, where, is_wide=is_wide)
            made.append(jax.device_put(own) if put is None else put(own))
            return made[-1]

        with jax.enable_x64(is_wide), jax.default_device(device):
            converted = each_leaf(batch, array)
        jax.block_until_ready(made)
        return converted

    return convert


def _own(value: npt.NDArray[Any], where: str, *, is_wide: bool) -> npt.NDArray[Any]:
    """Return a copy that JAX can use as it is: aligned, native, of one of its types.

    Raises:
        OverflowError: An integer does not fit.
    """
    native = value.dtype.newbyteorder("=")
    dtype = native if is_wide else _NARROW.get(native, native)
    if dtype != native:
        _check_fits(value, dtype, where)
    return own_copy(value, dtype)


def _check_fits(value: npt.NDArray[Any], dtype: np.dtype[Any], where: str) -> None:
    if dtype.kind not in "iu" or not value.size:
        return
    limits = np.iinfo(dtype)
    for number in (int(value.min()), int(value.max())):
        if not limits.min <= number <= limits.max:
            raise OverflowError(
                f"{where} has {number}, which does not fit into {dtype}: without 64-bit types, JAX "
                'has no larger integers; call jax.config.update("jax_enable_x64", True) before '
                "the loader is made, or map the field to smaller numbers"
            )
