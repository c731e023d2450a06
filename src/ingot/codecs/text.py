"""Bytes and text."""

import json
from typing import Any

from ingot._core import split_bytes, split_texts
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

    def decode_list(self, cells: list[bytes]) -> list[bytes]:
        """Return them."""
        return cells

    def decode_many(self, data: memoryview, offsets: bytes) -> list[bytes]:
        """Return a list of them."""
        return split_bytes(data, offsets)


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

    def decode_many(self, data: memoryview, offsets: bytes) -> list[str] | None:
        """Return a list of texts."""
        return split_texts(data, offsets)


class Json(Codec):
    """Anything that JSON can say."""

    name = "json"
    takes_none = True

    def encode(self, value: Any) -> bytes:
        """Return its JSON form."""
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        except RecursionError as error:
            message = "a value that is nested too deeply for JSON"
            raise ValueError(message) from error
        return text.encode()

    def decode(self, data: bytes) -> Any:
        """Return the value; tuples come back as lists."""
        try:
            return json.loads(data)
        except RecursionError as error:
            message = "JSON that is nested too deeply"
            raise ValueError(message) from error
