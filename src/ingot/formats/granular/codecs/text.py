"""Bytes and text."""


def encode_bytes(value: object) -> bytes:
    """Return the bytes unchanged."""
    if not isinstance(value, bytes):
        message = f"expected bytes, got {type(value).__name__}"
        raise TypeError(message)
    return value


def decode_bytes(buffer: bytes) -> bytes:
    """Return the bytes unchanged."""
    return buffer


def encode_utf8(value: object) -> bytes:
    """Encode text as UTF-8."""
    if not isinstance(value, str):
        message = f"expected a str, got {type(value).__name__}"
        raise TypeError(message)
    return value.encode()


def decode_utf8(buffer: bytes) -> str:
    """Decode UTF-8 text.

    Raises:
        ValueError: The bytes are not UTF-8.
    """
    return buffer.decode()
