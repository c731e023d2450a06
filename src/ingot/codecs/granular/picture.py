"""Pictures as files of JPEG or PNG."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.image import pillow

_FORMATS = {"jpg": "JPEG", "png": "PNG"}


def encode_image(value: Any, quality: int = 75, format: str = "jpg") -> bytes:  # noqa: A002
    """Return a picture as a file.

    Args:
        value: An array of height and width, or height, width and colours.
        quality: How much a JPEG file keeps, up to 100.
        format: "jpg" or "png".

    Raises:
        TypeError: The array is no picture.
        ValueError: There is no such format, or it cannot keep such a picture.
    """
    kind = _FORMATS.get(format)
    if kind is None:
        message = f'the format of a picture is "jpg" or "png", not {format!r}'
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
    """Return the pixels of a JPEG or PNG file, which cannot be written to.

    Raises:
        ValueError: It is no such file, or has more pixels than Pillow allows.
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
        message = f"no JPEG or PNG picture that can be read: {error}"
        raise ValueError(message) from error
