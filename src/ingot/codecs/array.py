"""Arrays of numbers: each with its own shape, or all with the same.

An array with its own shape is stored as one byte for the length of the name of its dtype,
that name as numpy writes it (`<f4`), one byte for the number of dimensions, eight bytes
little-endian for each dimension, and its elements in C order.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot._core import stack_arrays
from ingot.codecs.codec import Codec, Packed, cells_of

_NAME = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f(?:2|4|8)|<c(?:8|16)")
DIMENSIONS_MAX = 64


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype that a file names.

    Raises:
        ValueError: It is not one of the supported dtypes.
    """
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"an array has the unknown dtype {name!r}")
    return np.dtype(name)


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that elements are stored as: the same, little-endian.

    Raises:
        TypeError: It is not a numeric dtype that numpy has on every machine.
    """
    little = dtype.newbyteorder("<") if dtype.itemsize > 1 else dtype
    if dtype.names is not None or _NAME.fullmatch(little.str) is None:
        raise TypeError(f"expected an array of numbers, got {dtype}")
    return little


def array_of(value: Any) -> npt.NDArray[Any]:
    """Convert a value, other than text, to a numpy array.

    Raises:
        TypeError: It is not an array of numbers.
    """
    if isinstance(value, str | bytes):
        raise TypeError(f"expected an array, got {type(value).__name__}")
    array = np.asarray(value)
    stored_dtype(array.dtype)
    return array


class Array(Codec):
    """Arrays, each with its own dtype and shape."""

    name = "array"

    def encode(self, value: Any) -> bytes:
        """Return dtype, shape and elements as bytes."""
        array = array_of(value)
        dtype = stored_dtype(array.dtype)
        kind = dtype.str.encode()
        shape = np.array(array.shape, "<u8").tobytes()
        head = bytes([len(kind)]) + kind + bytes([array.ndim]) + shape
        return head + array.astype(dtype, copy=False).tobytes()

    def decode(self, data: bytes) -> npt.NDArray[Any]:
        """Return the array."""
        if not data or len(data) < 2 + data[0]:
            message = "the array is truncated"
            raise ValueError(message)
        start = 2 + data[0] + 8 * data[1 + data[0]]
        dtype, shape = _head(data[:start])
        return elements(dtype, shape, memoryview(data)[start:])

    def decode_many(self, data: memoryview, offsets: bytes) -> Any:
        """Return one array, if all arrays have the same dtype and shape."""
        stack = stack_arrays(data, offsets)
        if stack is None or len(stack[1]) >= DIMENSIONS_MAX:
            return None
        name, shape, stacked = stack
        count = len(offsets) // 8 - 1
        return np.frombuffer(stacked, dtype_of(name)).reshape(count, *shape)


@lru_cache
def _head(head: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the dtype and the shape from the beginning of a cell."""
    at = 1 + head[0]
    lengths = head[at + 1 :]
    if len(lengths) != 8 * head[at]:
        raise ValueError("the array is truncated")
    starts = range(0, len(lengths), 8)
    shape = tuple(int.from_bytes(lengths[k : k + 8], "little") for k in starts)
    return dtype_of(head[1:at].decode("ascii")), shape


def size_of(dtype: np.dtype[Any], shape: Sequence[int]) -> int:
    """Return the size of an array in bytes.

    Raises:
        ValueError: The shape is invalid.
    """
    if len(shape) > DIMENSIONS_MAX or max(shape, default=0) >> 63 or min(shape, default=0) < 0:
        message = f"invalid shape of {len(shape)} dimensions, beginning with {list(shape[:4])}"
        raise ValueError(message)
    return math.prod(shape) * dtype.itemsize


def elements(
    dtype: np.dtype[Any], shape: tuple[int, ...], data: memoryview | bytes
) -> npt.NDArray[Any]:
    """Copy bytes that were read into a new array.

    Raises:
        ValueError: Their number does not match the shape, or the shape is invalid.
    """
    if size_of(dtype, shape) != len(data):
        raise ValueError(f"{len(data)} bytes do not match an array of shape {shape}")
    return np.ndarray(shape, dtype, bytearray(data))


class FixedArray(Codec):
    """Arrays of one dtype and shape, stored without a header.

    Args:
        dtype: The dtype of the elements.
        shape: The shape; () for single numbers.
    """

    def __init__(self, dtype: npt.DTypeLike, *shape: int) -> None:
        self.dtype: np.dtype[Any] = stored_dtype(np.dtype(dtype))
        self.shape = shape
        self.name = f"array({','.join([self.dtype.name, *map(str, shape)])})"

    def encode(self, value: Any) -> bytes:
        """Return the elements as bytes; an array with this dtype and shape is fastest."""
        if type(value) is np.ndarray and value.dtype == self.dtype and value.shape == self.shape:
            return value.tobytes()
        array = array_of(value)
        if array.shape != self.shape:
            raise ValueError(f"expected an array of shape {self.shape}, got {array.shape}")
        return self._stored(array).tobytes()

    def encode_many(self, values: Sequence[Any] | npt.NDArray[Any]) -> Packed | None:
        """Return the elements of all arrays as bytes, without a copy if they are one array."""
        array = values if isinstance(values, np.ndarray) else self._stack(values)
        if array is None or array.shape[1:] != self.shape:
            return None
        return cells_of(self._stored(array_of(array)))

    def _stack(self, values: Sequence[Any]) -> npt.NDArray[Any] | None:
        """Return values as one array; None if that might change the dtype of one of them."""
        types = set(map(type, values))
        if types == {np.ndarray}:
            alike = {(one.dtype, one.shape) for one in values}
            return np.stack(values) if len(alike) == 1 else None
        kind = {float: np.float64, int: np.int64}.get(types.pop()) if len(types) == 1 else None
        if kind is None or self.shape:
            return None
        try:
            return np.array(values, kind)
        except OverflowError:
            return None

    def _stored(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return elements in the dtype in which they are stored.

        Raises:
            TypeError: They have another kind of dtype.
            ValueError: One of them is too large.
        """
        if array.dtype.kind in "iu" and self.dtype.kind in "iu":
            self._check_range(array)
        elif not np.can_cast(array.dtype, self.dtype, "same_kind"):
            raise TypeError(f"expected an array of {self.dtype}, got {array.dtype}")
        with np.errstate(over="ignore"):
            stored = array.astype(self.dtype, copy=False)
        if not np.can_cast(array.dtype, self.dtype):
            self._check_finite(array, stored)
        return stored

    def _check_range(self, array: npt.NDArray[Any]) -> None:
        if array.size and not np.can_cast(array.dtype, self.dtype):
            limits = np.iinfo(self.dtype)
            if array.min() < limits.min or array.max() > limits.max:
                message = f"numbers from {array.min()} to {array.max()} do not fit {self.dtype}"
                raise ValueError(message)

    def _check_finite(self, array: npt.NDArray[Any], stored: npt.NDArray[Any]) -> None:
        if (np.isinf(stored) & ~np.isinf(array)).any():
            raise ValueError(f"a number is too large for {self.dtype}")

    def decode(self, data: bytes) -> Any:
        """Return the array, or a number if the shape is ()."""
        array = elements(self.dtype, self.shape, data)
        return array if self.shape else array[()]

    def decode_many(self, data: memoryview, offsets: bytes) -> Any:
        """Return one array of all values."""
        ends = np.frombuffer(offsets, np.int64)
        count, length = len(ends) - 1, math.prod(self.shape) * self.dtype.itemsize
        if not np.array_equal(ends, np.arange(count + 1) * length):
            return None
        return np.frombuffer(data, self.dtype, count * math.prod(self.shape)).reshape(
            count, *self.shape
        )
