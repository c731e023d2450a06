"""Bytes and text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot._core import split_bytes, split_texts
from ingot.codecs.codec import Codec, Packed, joined
from ingot.codecs.limit import check_text

_LARGE = 64 << 20


class Bytes(Codec):
    """Bytes, stored unchanged."""

    name = "bytes"

    def encode(self, value: Any) -> bytes:
        """Return the bytes."""
        if isinstance(value, bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        raise TypeError(f"expected bytes, got {type(value).__name__}")

    def encode_many(self, values: Sequence[Any] | npt.NDArray[Any]) -> Packed | None:
        """Concatenate the bytes."""
        values = _listed(values, "S")
        return joined(values) if {bytes}.issuperset(map(type, values)) else None

    def decode(self, data: bytes) -> bytes:
        """Return the bytes."""
        return data

    def decode_list(self, cells: list[bytes]) -> list[bytes]:
        """Return the bytes of each cell."""
        return cells

    def decode_many(self, data: memoryview, offsets: bytes) -> list[bytes]:
        """Return a list of bytes."""
        return split_bytes(data, offsets)


class Utf8(Codec):
    """Text."""

    name = "utf8"

    def encode(self, value: Any) -> bytes:
        """Encode text as UTF-8."""
        if not isinstance(value, str):
            raise TypeError(f"expected a str, got {type(value).__name__}")
        return value.encode()

    def encode_many(self, values: Sequence[Any] | npt.NDArray[Any]) -> Packed | None:
        """Encode each text as UTF-8."""
        values = _listed(values, "UT")
        is_text = {str}.issuperset(map(type, values))
        return joined([one.encode() for one in values]) if is_text else None

    def decode(self, data: bytes) -> str:
        """Return the text."""
        check_text(data)
        return data.decode()

    def decode_many(self, data: memoryview, offsets: bytes) -> list[str] | None:
        """Return a list of texts."""
        if len(data) > _LARGE:
            check_text(bytes(data))
        return split_texts(data, offsets)


def _listed(values: Sequence[Any] | npt.NDArray[Any], kinds: str) -> Sequence[Any]:
    """Return the elements of an array of text or bytes as objects of Python."""
    if isinstance(values, np.ndarray) and values.dtype.kind in kinds:
        listed: list[Any] = values.tolist()
        return listed
    return values  # type: ignore[return-value]
