"""Whether an image file is complete, judged by its structure alone."""

_PNG_FRONT = 8
_CHUNK_FRAME = 12
_RIFF_FRONT = 8
_MARKER = 0xFF
_SCAN = 0xDA
_END = b"\xff\xd9"
_ALONE = {0x01, *range(0xD0, 0xD9)}
"""JPEG markers that are not followed by a segment."""


def check_whole(name: str, data: bytes) -> None:
    """Refuse a truncated image.

    Raises:
        ValueError: It is truncated.
    """
    is_whole = {"jpg": _is_whole_jpg, "png": _is_whole_png, "webp": _is_whole_webp}.get(name)
    if is_whole is not None and not is_whole(data):
        message = f"the {name} file of {len(data)} bytes is truncated: its end is missing"
        raise ValueError(message)


def _is_whole_jpg(data: bytes) -> bool:
    """Whether there is an end after the pixels; an embedded thumbnail has its own end."""
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
