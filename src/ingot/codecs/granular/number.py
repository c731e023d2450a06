"""Integers in two's complement, as many bytes as they take or a fixed number."""

import operator
from typing import Literal, SupportsIndex, TypeAlias

Order: TypeAlias = Literal["little", "big"]


def encode_int(
    value: SupportsIndex,
    size: int | None = None,
    signed: bool = True,  # noqa: FBT001, FBT002 -- Granular's signature
    endian: Order = "little",
) -> bytes:
    """Return the bytes of an integer.

    Args:
        value: The integer, of any kind and size.
        size: How many bytes; as few as it takes, if that is None.
        signed: Whether one bit is for the sign.
        endian: The order of the bytes.

    Raises:
        TypeError: It is no integer.
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
    """Return the integer of its bytes; of none it is 0.

    Raises:
        ValueError: There are not `size` of them.
    """
    if size is not None and len(buffer) != size:
        message = f"an integer of {size} bytes, not {len(buffer)}"
        raise ValueError(message)
    return int.from_bytes(buffer, endian, signed=signed)
