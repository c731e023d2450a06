"""The limit on the memory of decoded values."""

import numpy as np
import numpy.typing as npt

from ingot._core import max_decoded_bytes
from ingot._core import set_max_decoded_bytes as _set

_OBJECT = 64
_NUMBER = 40
_WIDE = 4
_FOUR_BYTES = 0xF0
_STEP = 1 << 20


def set_max_decoded_bytes(nbytes: int) -> None:
    """Set how many bytes a value, or all values of a batch, may have once decoded.

    The limit keeps a small file from exhausting memory. It applies to every file format and
    type in this process. It does not apply to values that are stored uncompressed, nor to
    batches that are at most 256 times as large as their stored form. The default is 1 GiB, or
    the value of the environment variable INGOT_MAX_DECODED_BYTES when the process starts.

    Args:
        nbytes: The limit.

    Raises:
        ValueError: It is negative, or not less than 2^63.

    Example:
        >>> ingot.set_max_decoded_bytes(8 << 30)  # doctest: +SKIP
    """
    if not isinstance(nbytes, int) or isinstance(nbytes, bool):
        raise TypeError(f"expected a number of bytes, got {nbytes!r:.50}")
    if not 0 <= nbytes < 1 << 63:
        raise ValueError(f"expected a number of bytes from 0 to 2^63, got {nbytes!r:.50}")
    _set(nbytes)


def check_decoded(nbytes: int) -> None:
    """Refuse a value that takes more bytes than the limit, by a ValueError."""
    most = max_decoded_bytes()
    if nbytes > most:
        raise ValueError(
            f"it decodes to at least {nbytes:,} bytes: the limit is {most:,}, "
            "ingot.set_max_decoded_bytes(...) changes it"
        )


def check_json(text: bytes) -> None:
    """Refuse JSON whose values take more memory than is allowed, by a ValueError."""
    if len(text) * _OBJECT > max_decoded_bytes():
        letters = _counts(text)
        objects = letters[ord("[")] + letters[ord("{")] + letters[ord('"')] // 2
        width = _WIDE if letters[_FOUR_BYTES:].any() else 1
        check_decoded(width * len(text) + _OBJECT * int(objects) + _NUMBER * int(letters[ord(",")]))


def check_msgpack(data: bytes) -> None:
    """Refuse msgpack whose values take more memory than is allowed, by a ValueError."""
    if len(data) * _OBJECT > max_decoded_bytes():
        kinds = _counts(data)
        containers = int(kinds[0x80:0xC0].sum() + kinds[0xC7:0xCA].sum() + kinds[0xD4:0xE0].sum())
        check_decoded(len(data) + (_OBJECT + 8) * containers + _NUMBER * int(kinds[0xE0:].sum()))


def check_text(text: bytes) -> None:
    """Refuse text that takes up to four bytes a letter, if that is too much, by a ValueError."""
    if len(text) * _WIDE > max_decoded_bytes() and _counts(text)[_FOUR_BYTES:].any():
        check_decoded(len(text) * _WIDE)


def _counts(data: bytes) -> npt.NDArray[np.int64]:
    """Return how often each byte occurs."""
    found = np.zeros(256, np.int64)
    letters = np.frombuffer(data, np.uint8)
    for start in range(0, len(letters), _STEP):
        found += np.bincount(letters[start : start + _STEP], minlength=256)
    return found
