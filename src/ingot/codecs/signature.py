"""Files that are stored unchanged: what they begin with, and whether images are complete."""

import os

_SIGNATURES: dict[str, tuple[tuple[int, bytes], ...]] = {
    "jpg": ((0, b"\xff\xd8\xff"),),
    "png": ((0, b"\x89PNG\r\n\x1a\n"),),
    "webp": ((0, b"RIFF"), (8, b"WEBP")),
    "wav": ((8, b"WAVE"),),
    "flac": ((0, b"fLaC"),),
    "mp4": ((4, b"ftyp"),),
}

_PNG_FRONT = 8
_CHUNK_FRAME = 12
_RIFF_FRONT = 8
_MARKER = 0xFF
_SCAN = 0xDA
_END = b"\xff\xd9"
_ALONE = {0x01, *range(0xD0, 0xD9)}
"""JPEG markers that are not followed by a segment."""


def given(name: str, value: object) -> bytes | None:
    """Return the value if it is the bytes of a file, else None.

    Raises:
        TypeError: It is the path of a file.
        ValueError: The bytes do not begin like a file of this type.
    """
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        raise TypeError(f"expected the content of a {name} file: Path({path!r:.200}).read_bytes()")
    if hasattr(value, "read") and not hasattr(value, "__array_interface__"):
        message = f"expected the content of a {name} file, got an open file: pass file.read()"
        raise TypeError(message)
    if isinstance(value, bytes | bytearray | memoryview):
        return checked(name, bytes(value))
    return None


def name_of(data: bytes) -> str | None:
    """Return the type of file that bytes begin like, if it is one of those known here."""
    for name, parts in _SIGNATURES.items():
        if all(data[at : at + len(expected)] == expected for at, expected in parts):
            return name
    return None


def checked(name: str, data: bytes) -> bytes:
    """Return the bytes of a file unchanged.

    Raises:
        ValueError: They do not begin like a file of this type.
    """
    for offset, expected in _SIGNATURES[name]:
        if data[offset : offset + len(expected)] != expected:
            message = f"{len(data)} bytes are not a {name} file: they begin with {data[:12]!r}"
            if (other := name_of(data)) is not None:
                message = (
                    f"these {len(data)} bytes are a {other} file, not a {name} file; a field of "
                    "type bytes takes files of several types"
                )
            raise ValueError(message)
    return data


def is_file_type(name: str) -> bool:
    """Whether values of a type are files that are stored unchanged."""
    return name in _SIGNATURES


def check_whole(name: str, data: bytes) -> None:
    """Refuse a truncated image, by a ValueError."""
    is_whole = {"jpg": _is_whole_jpg, "png": _is_whole_png, "webp": _is_whole_webp}.get(name)
    if is_whole is not None and not is_whole(data):
        raise ValueError(f"the {name} file of {len(data)} bytes is truncated: its end is missing")


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
