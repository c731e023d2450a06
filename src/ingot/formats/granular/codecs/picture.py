"""Images as JPEG or PNG files."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.image import pillow

_FORMATS = {"jpg": "JPEG", "png": "PNG"}


def encode_image(value: Any, quality: int = 75, format: str = "jpg") -> bytes:  # noqa: A002
    """Encode an image as a file.

    Args:
        value: An array of shape (height, width) or (height, width, channels).
        quality: The quality of a JPEG file, up to 100.
        format: "jpg" or "png".

    Raises:
        TypeError: The array is not an image.
        ValueError: The format is unknown, or cannot store such an image.
    """
    kind = _FORMATS.get(format)
    if kind is None:
        message = f'the image format must be "jpg" or "png", got {format!r}'
        raise ValueError(message)
    array = np.asarray(value)
    if array.shape[2:] == (1,):
        array = array[:, :, 0]
    stream = io.BytesIO()
    try:
        pillow().fromarray(array).save(stream, kind, quality=quality)
    except OSError as error:
        raise ValueError(str(error)) from error
    return stream.getvalue()


def decode_image(buffer: bytes, *args: object) -> npt.NDArray[Any]:
    """Return the pixels of a JPEG or PNG file as a read-only array.

    Raises:
        ValueError: The file is invalid, or has more pixels than Pillow allows.
    """
    del args
    images = pillow()
    try:
        with images.open(io.BytesIO(buffer), formats=list(_FORMATS.values())) as image:
            return np.asarray(image)
    except (
        OSError,
        SyntaxError,
        images.DecompressionBombError,
        images.DecompressionBombWarning,
    ) as error:
        message = f"cannot read this JPEG or PNG image: {error}"
        raise ValueError(message) from error
