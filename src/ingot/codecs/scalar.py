"""Single numbers, which are stored in the index of a file."""

import operator
import struct
from typing import Any

import numpy as np

from ingot.codecs.codec import Codec


class Int(Codec):
    """A 64-bit integer."""

    name = "int"
    dtype = np.dtype("<i8")

    def encode(self, value: Any) -> bytes:
        """Return eight bytes."""
        if isinstance(value, bool | np.bool_):
            message = "expected an int, got a bool"
            raise TypeError(message)
        try:
            return operator.index(value).to_bytes(8, "little", signed=True)
        except TypeError:
            message = f"expected an int, got {type(value).__name__}"
            raise TypeError(message) from None
        except OverflowError:
            message = f"{value} does not fit into 64 bits"
            raise ValueError(message) from None

    def decode(self, data: bytes) -> int:
        """Return the number."""
        return int.from_bytes(data, "little", signed=True)


class Float(Codec):
    """A 64-bit floating-point number."""

    name = "float"
    dtype = np.dtype("<f8")

    def encode(self, value: Any) -> bytes:
        """Return eight bytes."""
        if isinstance(value, bool | np.bool_) or not isinstance(
            value, int | float | np.integer | np.floating
        ):
            message = f"expected a float, got {type(value).__name__}"
            raise TypeError(message)
        try:
            return struct.pack("<d", float(value))
        except OverflowError:
            message = "the number is too large for 64 bits"
            raise ValueError(message) from None

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
        if not isinstance(value, bool | np.bool_):
            message = f"expected a bool, got {type(value).__name__}"
            raise TypeError(message)
        return b"\1" if value else b"\0"

    def decode(self, data: bytes) -> bool:
        """Return the boolean."""
        return data != b"\0"
