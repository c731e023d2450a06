"""Pictures, compressed: arrays of bytes, or bytes that are such a file already."""

import io
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.codec import Codec

_FORMATS = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP"}


def _pillow() -> ModuleType:
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        message = "pictures need Pillow: pip install 'ingot[image]'"
        raise ImportError(message) from error


class Image(Codec):
    """Pictures of height, width and 1, 3 or 4 colours.

    Args:
        name: "jpg", "png" or "webp".
        quality: How much a lossy format keeps, up to 100.
    """

    def __init__(self, name: str, quality: int = 90) -> None:
        self.name = name
        self.quality = quality

    def encode(self, value: Any) -> bytes:
        """Return a picture as a file; bytes are taken for one and stored as they are."""
        if isinstance(value, bytes):
            return value
        array = np.asarray(value)
        if array.dtype != np.uint8 or array.ndim not in (2, 3):
            message = (
                f"a picture of height, width and colours in uint8, "
                f"not shape {array.shape} of {array.dtype}"
            )
            raise TypeError(message)
        if array.shape[2:] == (1,):
            array = array[:, :, 0]
        stream = io.BytesIO()
        _pillow().fromarray(array).save(stream, _FORMATS[self.name], quality=self.quality)
        return stream.getvalue()

    def decode(self, data: bytes) -> npt.NDArray[np.uint8]:
        """Return the pixels."""
        pillow = _pillow()
        try:
            with pillow.open(io.BytesIO(data), formats=[_FORMATS[self.name]]) as image:
                return np.asarray(image)
        except pillow.DecompressionBombError as error:
            raise ValueError(str(error)) from error
