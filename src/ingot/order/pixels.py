"""The pixels of a picture, as an array or in a file."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs import codec_of
from ingot.codecs.signature import name_of

_FILES = ("jpg", "png", "webp")
_COLOURS_MAX = 4
_HIGH_BYTE = 8


def pixels_of(field: str, value: Any) -> npt.NDArray[np.uint8]:
    """Return pixels in one piece.

    Raises:
        TypeError: It is not a picture.
    """
    value = _decoded(field, value) if isinstance(value, bytes) else value
    array = value if isinstance(value, np.ndarray) else None
    if array is not None and array.dtype == np.uint16:
        array = (array >> _HIGH_BYTE).astype(np.uint8)
    dimensions = (2, 3)
    if array is None or array.dtype != np.uint8 or array.ndim not in dimensions:
        found = type(value).__name__
        if isinstance(value, np.ndarray):
            found = f"an array of {value.dtype} of shape {value.shape}"
        message = (
            f"field {field!r} is {found}, expected a picture: uint8 or uint16 in height and "
            "width, or in height, width and colours"
        )
        raise TypeError(message)
    if 0 in array.shape or (array.ndim > dimensions[0] and array.shape[2] > _COLOURS_MAX):
        message = (
            f"field {field!r} has shape {array.shape}, expected 1 to 4 colours, which are last"
        )
        raise TypeError(message)
    return np.ascontiguousarray(array)


def _decoded(field: str, data: bytes) -> Any:
    """Return the pixels of a file, by its first bytes.

    Raises:
        TypeError: It is not the file of a picture.
        ValueError: It cannot be decoded.
    """
    name = name_of(data)
    if name not in _FILES:
        message = f"field {field!r} is bytes that are not a JPEG, PNG or WebP file: {data[:12]!r}"
        raise TypeError(message)
    return codec_of(name).decode(data)
