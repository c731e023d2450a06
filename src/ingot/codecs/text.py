"""Bytes and text."""

import json
from typing import Any

from ingot.codecs.codec import Codec


class Bytes(Codec):
    """Bytes as they are."""

    name = "bytes"

    def encode(self, value: Any) -> bytes:
        """Return them."""
        if isinstance(value, bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        message = f"bytes, not {type(value).__name__}"
        raise TypeError(message)

    def decode(self, data: bytes) -> bytes:
        """Return them."""
        return data


class Utf8(Codec):
    """Text."""

    name = "utf8"

    def encode(self, value: Any) -> bytes:
        """Return its UTF-8 form."""
        if not isinstance(value, str):
            message = f"a str, not {type(value).__name__}"
            raise TypeError(message)
        return value.encode()

    def decode(self, data: bytes) -> str:
        """Return the text."""
        return data.decode()


class Json(Codec):
    """Anything that JSON can say."""

    name = "json"

    def encode(self, value: Any) -> bytes:
        """Return its JSON form."""
        return json.dumps(
            value, allow_nan=False, ensure_ascii=False, separators=(",", ":")
        ).encode()

    def decode(self, data: bytes) -> Any:
        """Return the value; tuples come back as lists."""
        try:
            return json.loads(data)
        except RecursionError as error:
            message = "JSON that is nested too deeply"
            raise ValueError(message) from error
