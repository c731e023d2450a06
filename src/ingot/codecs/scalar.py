"""Single numbers, which are stored in the index of a file."""

import operator
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.codec import Codec, Packed, cells_of

_BOOLS = (bool, np.bool_)
_REALS = (int, float, np.integer, np.floating)
_INTS = {int, np.int8, np.int16, np.int32, np.int64}
_FLOATS = {int, float, np.float16, np.float32, np.float64}


class Int(Codec):
    """A 64-bit integer."""

    name = "int"
    dtype = np.dtype("<i8")

    def encode(self, value: Any) -> bytes:
        """Return eight bytes."""
        if isinstance(value, _BOOLS):
            raise TypeError("expected an int, got a bool")
        try:
            return operator.index(value).to_bytes(8, "little", signed=True)
        except TypeError:
            raise TypeError(f"expected an int, got {type(value).__name__}") from None
        except OverflowError:
            raise ValueError(f"{value} does not fit into 64 bits") from None

    def encode_many(self, values: Sequence[Any] | npt.NDArray[Any]) -> Packed | None:
        """Return eight bytes for each number."""
        return _numbers(values, self.dtype, "iu", _INTS)

    def decode(self, data: bytes) -> int:
        """Return the number."""
        return int.from_bytes(data, "little", signed=True)


class Float(Codec):
    """A 64-bit floating-point number."""

    name = "float"
    dtype = np.dtype("<f8")

    def encode(self, value: Any) -> bytes:
        """Return eight bytes."""
        if isinstance(value, _BOOLS) or not isinstance(value, _REALS):
            raise TypeError(f"expected a float, got {type(value).__name__}")
        try:
            return struct.pack("<d", float(value))
        except OverflowError:
            raise ValueError("the number is too large for 64 bits") from None

    def encode_many(self, values: Sequence[Any] | npt.NDArray[Any]) -> Packed | None:
        """Return eight bytes for each number."""
        return _numbers(values, self.dtype, "fiu", _FLOATS)

    def decode(self, data: bytes) -> float:
        """Return the number."""
        value: float = struct.unpack("<d", data)[0]
        return value


class Bool(Codec):
    """True or false."""

    name = "bool"
    dtype = np.dtype("?")

    def encode(self, value: Any) -> bytes:
        """Return one byte."""
        if not isinstance(value, _BOOLS):
            raise TypeError(f"expected a bool, got {type(value).__name__}")
        return b"\1" if value else b"\0"

    def encode_many(self, values: Sequence[Any] | npt.NDArray[Any]) -> Packed | None:
        """Return one byte for each boolean."""
        return _numbers(values, self.dtype, "b", set(_BOOLS))

    def decode(self, data: bytes) -> bool:
        """Return the boolean."""
        return data != b"\0"


def _numbers(
    values: Sequence[Any] | npt.NDArray[Any], dtype: np.dtype[Any], kinds: str, types: set[type]
) -> Packed | None:
    """Return numbers as bytes; None if they are not numbers that `dtype` is known to hold."""
    if isinstance(values, np.ndarray):
        found = values.dtype
        if found.kind not in kinds or not np.can_cast(found, dtype) or values.ndim != 1:
            return None
        return cells_of(values.astype(dtype, copy=False))
    if not types.issuperset(map(type, values)):
        return None
    try:
        return cells_of(np.array(values, dtype))
    except OverflowError:
        return None
