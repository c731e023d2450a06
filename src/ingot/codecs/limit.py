"""The limit on the memory of decoded values."""

import numpy as np

from ingot._core import max_decoded_bytes
from ingot._core import set_max_decoded_bytes as _set

_OBJECT = 64
_NUMBER = 40


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
        message = f"expected a number of bytes, got {nbytes!r:.50}"
        raise TypeError(message)
    if not 0 <= nbytes < 1 << 63:
        message = f"expected a number of bytes from 0 to 2^63, got {nbytes!r:.50}"
        raise ValueError(message)
    _set(nbytes)


def check_decoded(nbytes: int) -> None:
    """Refuse a value that takes more bytes than the limit.

    Raises:
        ValueError: It does.
    """
    most = max_decoded_bytes()
    if nbytes > most:
        message = (
            f"it decodes to at least {nbytes:,} bytes: the limit is {most:,}, "
            "ingot.set_max_decoded_bytes(...) changes it"
        )
        raise ValueError(message)


def check_json(text: bytes) -> None:
    """Refuse JSON whose lists, dicts and numbers take more memory than is allowed.

    Raises:
        ValueError: It does.
    """
    if len(text) * _OBJECT > max_decoded_bytes():
        letters = np.bincount(np.frombuffer(text, np.uint8), minlength=256)
        objects = letters[ord("[")] + letters[ord("{")] + letters[ord('"')] // 2
        check_decoded(len(text) + _OBJECT * int(objects) + _NUMBER * int(letters[ord(",")]))


def check_msgpack(data: bytes) -> None:
    """Refuse msgpack whose lists, dicts and numbers take more memory than is allowed.

    Raises:
        ValueError: It does.
    """
    if len(data) * _OBJECT > max_decoded_bytes():
        kinds = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
        containers, numbers = int(kinds[0x80:0xC0].sum()), int(kinds[0xE0:].sum())
        check_decoded(len(data) + (_OBJECT + 8) * containers + _NUMBER * numbers)
