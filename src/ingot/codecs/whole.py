"""Whether the bytes of a picture reach to its end, told from its structure alone."""

_PNG_FRONT = 8
_CHUNK_FRAME = 12
_RIFF_FRONT = 8
_MARKER = 0xFF
_SCAN = 0xDA
_END = b"\xff\xd9"
_ALONE = {0x01, *range(0xD0, 0xD9)}
"""Markers of JPEG that have no segment behind them."""


def check_whole(name: str, data: bytes) -> None:
    """Refuse a picture that was cut short.

    Raises:
        ValueError: It was.
    """
    is_whole = {"jpg": _is_whole_jpg, "png": _is_whole_png, "webp": _is_whole_webp}.get(name)
    if is_whole is not None and not is_whole(data):
        message = f"a {name} file of {len(data)} bytes that was cut short: its end is missing"
        raise ValueError(message)


def _is_whole_jpg(data: bytes) -> bool:
    """Whether there is an end behind the pixels; a thumbnail inside has an end of its own."""
    at = 2
    while at + 4 <= len(data):
        if data[at] != _MARKER:
            return False
        marker = data[at + 1]
        if marker == _SCAN:
            return data.find(_END, at) >= 0
        if marker == _MARKER:
            at += 1
        elif marker in _ALONE:
            at += 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return False


def _is_whole_png(data: bytes) -> bool:
    at = _PNG_FRONT
    while at + _CHUNK_FRAME <= len(data):
        kind = data[at + 4 : at + 8]
        at += _CHUNK_FRAME + int.from_bytes(data[at : at + 4], "big")
        if kind == b"IEND":
            return at <= len(data)
    return False


def _is_whole_webp(data: bytes) -> bool:
    return len(data) >= _RIFF_FRONT + int.from_bytes(data[4:8], "little")
