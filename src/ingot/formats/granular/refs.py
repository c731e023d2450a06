"""References from a row to the values in its columns, as in Granular's `refs.bag`.

A record has an element for each key, in MessagePack: the number of a record; for a sequence
the number of its first record and the number of records, or nothing if it is empty.
"""

import struct
from collections.abc import Sequence
from typing import TypeAlias

Ref: TypeAlias = int | range
"""The number of a record, or a range of numbers for a sequence."""

_SINGLE = 0x7F
_INTS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"}
_SHORT_LIST, _SHORT_LIST_END = 0x90, 0x9F
_LISTS = {0xDC: ">H", 0xDD: ">I"}


def encode(refs: Sequence[Ref]) -> bytes:
    """Encode the references of a row as a record."""
    parts = [_list(len(refs))]
    for ref in refs:
        if isinstance(ref, int):
            parts.append(_int(ref))
        else:
            pair = [_int(ref.start), _int(len(ref))] if ref else []
            parts += [_list(len(pair)), *pair]
    return b"".join(parts)


def _int(number: int) -> bytes:
    if number <= _SINGLE:
        return bytes([number])
    return next(
        bytes([code]) + struct.pack(layout, number)
        for code, layout in _INTS.items()
        if number < 1 << 8 * struct.calcsize(layout)
    )


def _list(length: int) -> bytes:
    if length <= _SHORT_LIST_END - _SHORT_LIST:
        return bytes([_SHORT_LIST + length])
    return bytes([0xDC]) + struct.pack(">H", length)


def decode(record: bytes, sequences: Sequence[bool]) -> list[Ref]:
    """Decode the references of a row.

    Args:
        record: The record of the row.
        sequences: Whether each key has a sequence.

    Raises:
        ValueError: The record does not hold references of such a row.
    """
    try:
        length, at = _read_list(record, 0)
        if length != len(sequences):
            message = f"expected references of {len(sequences)} keys, got {length}"
            raise ValueError(message)
        refs: list[Ref] = []
        for is_sequence in sequences:
            ref, at = (_read_range if is_sequence else _read_int)(record, at)
            refs.append(ref)
    except (IndexError, struct.error):
        message = "the record is truncated"
        raise ValueError(message) from None
    if at != len(record):
        message = f"{len(record) - at} bytes follow its end"
        raise ValueError(message)
    return refs


def _read_int(record: bytes, at: int) -> tuple[int, int]:
    code = record[at]
    if code <= _SINGLE:
        return code, at + 1
    return _read_number(record, at, _INTS)


def _read_list(record: bytes, at: int) -> tuple[int, int]:
    code = record[at]
    if _SHORT_LIST <= code <= _SHORT_LIST_END:
        return code - _SHORT_LIST, at + 1
    return _read_number(record, at, _LISTS)


def _read_number(record: bytes, at: int, layouts: dict[int, str]) -> tuple[int, int]:
    layout = layouts.get(record[at])
    if layout is None:
        message = f"the byte {record[at]:#04x} at {at} does not begin a record number"
        raise ValueError(message)
    number: int = struct.unpack_from(layout, record, at + 1)[0]
    return number, at + 1 + struct.calcsize(layout)


def _read_range(record: bytes, at: int) -> tuple[range, int]:
    length, at = _read_list(record, at)
    if length == 0:
        return range(0), at
    if length != 2:  # noqa: PLR2004 -- the first and how many
        message = f"expected 0 or 2 numbers for a sequence, got {length}"
        raise ValueError(message)
    first, at = _read_int(record, at)
    count, at = _read_int(record, at)
    return range(first, first + count), at
