"""Arrays of numbers, each of its own shape or all of the same.

An array of its own shape is stored as one byte for the length of its type's name, that name
as numpy writes it (`<f4`), one byte for the number of dimensions, eight bytes little-endian
for each of them, and its elements in C order.
"""

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.codec import Codec

_KINDS = "biufc"
_NAME = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f(?:2|4|8)|<c(?:8|16)")


def _checked(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in _KINDS or dtype.names is not None:
        message = f"an array of numbers, not of {dtype}"
        raise TypeError(message)
    return dtype.newbyteorder("<") if dtype.itemsize > 1 else dtype


def _array(value: Any) -> npt.NDArray[Any]:
    if isinstance(value, str | bytes):
        message = f"an array, not {type(value).__name__}"
        raise TypeError(message)
    array = np.asarray(value)
    _checked(array.dtype)
    return array


class Array(Codec):
    """Arrays, each of its own type and shape."""

    name = "array"

    def encode(self, value: Any) -> bytes:
        """Return type, shape and elements."""
        array = _array(value)
        dtype = _checked(array.dtype)
        kind = dtype.str.encode()
        shape = np.array(array.shape, "<u8").tobytes()
        head = bytes([len(kind)]) + kind + bytes([array.ndim]) + shape
        return head + array.astype(dtype, copy=False).tobytes()

    def decode(self, data: bytes) -> npt.NDArray[Any]:
        """Return the array, which cannot be written to."""
        if not data or len(data) < 2 + data[0]:
            message = "an array is cut short"
            raise ValueError(message)
        at = 1 + data[0]
        kind = data[1:at].decode("ascii")
        if _NAME.fullmatch(kind) is None:
            message = f"an array of the unknown type {kind!r}"
            raise ValueError(message)
        dtype = np.dtype(kind)
        ndim = data[at]
        start = at + 1 + 8 * ndim
        shape = tuple(np.frombuffer(data[at + 1 : start], "<u8").tolist())
        if len(shape) != ndim or math.prod(shape) * dtype.itemsize != len(data) - start:
            message = f"an array of shape {shape} has other bytes than these {len(data) - start}"
            raise ValueError(message)
        return np.frombuffer(data, dtype, offset=start).reshape(shape)


class FixedArray(Codec):
    """Arrays of one type and shape, stored as their elements alone.

    Args:
        dtype: The type of the elements.
        shape: The shape; () for single numbers.
    """

    def __init__(self, dtype: npt.DTypeLike, *shape: int) -> None:
        self.dtype: np.dtype[Any] = _checked(np.dtype(dtype))
        self.shape = shape
        self.name = f"array({','.join([self.dtype.name, *map(str, shape)])})"

    def encode(self, value: Any) -> bytes:
        """Return the elements."""
        array = _array(value)
        if array.shape != self.shape:
            message = f"an array of shape {self.shape}, not {array.shape}"
            raise ValueError(message)
        if array.dtype.kind in "iu" and self.dtype.kind in "iu":
            self._check_range(array)
        elif not np.can_cast(array.dtype, self.dtype, "same_kind"):
            message = f"an array of {self.dtype}, not of {array.dtype}"
            raise TypeError(message)
        return array.astype(self.dtype, copy=False).tobytes()

    def _check_range(self, array: npt.NDArray[Any]) -> None:
        if array.size and not np.can_cast(array.dtype, self.dtype):
            limits = np.iinfo(self.dtype)
            if array.min() < limits.min or array.max() > limits.max:
                message = f"numbers from {array.min()} to {array.max()} do not fit {self.dtype}"
                raise ValueError(message)

    def decode(self, data: bytes) -> Any:
        """Return the array, which cannot be written to; a number, if the shape is ()."""
        array = np.frombuffer(data, self.dtype).reshape(self.shape)
        return array if self.shape else array[()]
