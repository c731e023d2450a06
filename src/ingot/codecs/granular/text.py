"""Bytes and text."""


def encode_bytes(value: object) -> bytes:
    """Return them as they are."""
    if not isinstance(value, bytes):
        message = f"bytes, not {type(value).__name__}"
        raise TypeError(message)
    return value


def decode_bytes(buffer: bytes) -> bytes:
    """Return them as they are."""
    return buffer


def encode_utf8(value: object) -> bytes:
    """Return the UTF-8 form of a text."""
    if not isinstance(value, str):
        message = f"a str, not {type(value).__name__}"
        raise TypeError(message)
    return value.encode()


def decode_utf8(buffer: bytes) -> str:
    """Return the text of its UTF-8 form.

    Raises:
        ValueError: They are no such bytes.
    """
    return buffer.decode()
