"""The first bytes of files, to recognize files that are stored unchanged."""

import os

_SIGNATURES: dict[str, tuple[tuple[int, bytes], ...]] = {
    "jpg": ((0, b"\xff\xd8\xff"),),
    "png": ((0, b"\x89PNG\r\n\x1a\n"),),
    "webp": ((0, b"RIFF"), (8, b"WEBP")),
    "wav": ((8, b"WAVE"),),
    "flac": ((0, b"fLaC"),),
    "mp4": ((4, b"ftyp"),),
}


def given(name: str, value: object) -> bytes | None:
    """Return the value if it is the bytes of a file, else None.

    Raises:
        TypeError: It is the path of a file.
        ValueError: The bytes do not begin like a file of this type.
    """
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        message = f"expected the content of a {name} file: Path({path!r:.200}).read_bytes()"
        raise TypeError(message)
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
