"""Small files of other formats, made byte by byte."""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import google_crc32c


def masked(data: bytes) -> bytes:
    """Return a checksum as TFRecord stores it."""
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(records: Iterable[bytes]) -> bytes:
    """Return a TFRecord file."""
    parts = []
    for record in records:
        length = struct.pack("<Q", len(record))
        parts += [length, masked(length), record, masked(record)]
    return b"".join(parts)


def write_all(folder: Path, suffix: str, contents: Iterable[bytes]) -> list[Path]:
    """Write a file for each of `contents` and return their paths.

    To open a file that was written within the last tick of the clock takes until the next one;
    of files that were all written first, only the last ones do.
    """
    paths = []
    folder.mkdir()
    for number, content in enumerate(contents):
        paths.append(folder / f"{number}{suffix}")
        paths[-1].write_bytes(content)
    return paths


def varint(value: int) -> bytes:
    """Return a number of up to 64 bits as protocol buffers have it."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(number: int, payload: bytes) -> bytes:
    """Return a field of bytes."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def feature(values: list[Any], *, packed: bool = True) -> bytes:
    """Return a `tf.train.Feature` of bytes, floats or integers."""
    if not values:
        return b""
    if isinstance(values[0], bytes):
        return message(1, b"".join(message(1, one) for one in values))
    is_float = isinstance(values[0], float)
    each = [struct.pack("<f", one) if is_float else varint(one) for one in values]
    if packed:
        return message(2 if is_float else 3, message(1, b"".join(each)))
    tag = varint(1 << 3 | (5 if is_float else 0))
    return message(2 if is_float else 3, b"".join(tag + one for one in each))


def features(given: dict[str, list[Any]], *, packed: bool = True) -> bytes:
    """Return `tf.train.Features`."""
    return b"".join(
        message(1, message(1, name.encode()) + message(2, feature(values, packed=packed)))
        for name, values in given.items()
    )


def example(*, packed: bool = True, **given: list[Any]) -> bytes:
    """Return a `tf.train.Example`."""
    return message(1, features(given, packed=packed))


def sequence_example(context: dict[str, list[Any]], lists: dict[str, list[list[Any]]]) -> bytes:
    """Return a `tf.train.SequenceExample`."""
    entries = b"".join(
        message(
            1,
            message(1, name.encode())
            + message(2, b"".join(message(1, feature(step)) for step in steps)),
        )
        for name, steps in lists.items()
    )
    return message(1, features(context)) + message(2, entries)


def write(path: Path, data: bytes, *, parents: bool = False) -> Path:
    """Write a file, and its directory if asked to."""
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
