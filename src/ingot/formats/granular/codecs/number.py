"""Integers in two's complement, with a fixed or the minimum number of bytes."""

import operator
from typing import Literal, SupportsIndex, TypeAlias

Order: TypeAlias = Literal["little", "big"]


def encode_int(
    value: SupportsIndex,
    size: int | None = None,
    signed: bool = True,  # noqa: FBT001, FBT002 -- Granular's signature
    endian: Order = "little",
) -> bytes:
    """Encode an integer.

    Args:
        value: The integer, of any type and size.
        size: The number of bytes; None for as few as possible.
        signed: Whether one bit is the sign.
        endian: The byte order.

    Raises:
        TypeError: It is not an integer.
        OverflowError: It does not fit.
    """
    number = operator.index(value)
    if size is None:
        size = max(1, (number.bit_length() + 7 + signed) // 8)
    return number.to_bytes(max(1, size), endian, signed=signed)


def decode_int(
    buffer: bytes,
    size: int | None = None,
    signed: bool = True,  # noqa: FBT001, FBT002 -- Granular's signature
    endian: Order = "little",
) -> int:
    """Decode an integer; no bytes are 0.

    Raises:
        ValueError: The number of bytes is not `size`.
    """
    if size is not None and len(buffer) != size:
        message = f"expected an integer of {size} bytes, got {len(buffer)}"
        raise ValueError(message)
    return int.from_bytes(buffer, endian, signed=signed)
