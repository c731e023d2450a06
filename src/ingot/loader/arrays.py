"""Batches as arrays of JAX."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.extras import requirement
from ingot.loader.memory import own_copy

_NARROW = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
_TYPES = "?bBhHiIlLqQefdFD"


def arrays(put: Callable[[npt.NDArray[Any]], Any] | None = None) -> Callable[[Any], Any]:
    """Return a function that turns the arrays of a batch into arrays of JAX.

    Lists stay as they are. Each array is copied once, into memory that JAX takes over: on the
    CPU, JAX may use the memory of an array for as long as its own array lives. Whether there are
    64-bit types, and the default device, are as they are for the thread that calls this function.
    Without 64-bit types, numbers get 32 bits.

    Args:
        put: Makes an array of JAX from an array that nobody else holds; by default the array is
            put on the default device.

    Raises:
        ModuleNotFoundError: JAX is not installed.
    """
    with requirement("jax", 'to="jax"'):
        import jax  # noqa: PLC0415 -- only those who ask for its arrays need it

    is_wide = bool(jax.config.jax_enable_x64)
    device = jax.config.jax_default_device

    def convert(batch: Any) -> Any:
        made: list[Any] = []

        def array(value: Any, where: str) -> Any:
            if not _is_numeric(value):
                return value
            own = _own(value, where, is_wide=is_wide)
            made.append(jax.device_put(own) if put is None else put(own))
            return made[-1]

        with jax.enable_x64(is_wide), jax.default_device(device):
            converted = _each(batch, array, "batch")
        jax.block_until_ready(made)
        return converted

    return convert


def _each(batch: Any, change: Callable[[Any, str], Any], where: str) -> Any:
    """Return a batch with each leaf changed by a function of it and its place; lists are leaves."""
    if isinstance(batch, Mapping):
        return {key: _each(one, change, f"{where}[{key!r}]") for key, one in batch.items()}
    if isinstance(batch, tuple):
        changed = [_each(one, change, f"{where}[{k}]") for k, one in enumerate(batch)]
        return type(batch)(*changed) if hasattr(batch, "_fields") else tuple(changed)
    return change(batch, where)


def _is_numeric(value: Any) -> bool:
    """Whether it is an array of numbers that JAX has: not `longdouble`, but those of ml_dtypes."""
    if not isinstance(value, np.ndarray):
        return False
    return value.dtype.char in _TYPES or value.dtype.type.__module__ == "ml_dtypes"


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
            message = (
                f"{where} has {number}, which does not fit into {dtype}: without 64-bit types, JAX "
                'has no larger integers; call jax.config.update("jax_enable_x64", True) before '
                "the loader is made, or map the field to smaller numbers"
            )
            raise OverflowError(message)
