"""Compressed images: uint8 arrays, or the bytes of an image file.

The usual JPEG and PNG files are decoded natively. For files that the native decoder refuses,
the codec falls back to Pillow.
"""

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot._core import decode_pictures
from ingot.codecs.codec import Codec
from ingot.codecs.limit import check_decoded
from ingot.codecs.signature import check_whole, given
from ingot.extras import require

_FORMATS = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP"}
_COLOURS = {"jpg": (1, 3), "png": (1, 2, 3, 4), "webp": (3, 4)}
_NATIVE = {"jpg", "png"}
_COLOURS_MAX = 4
_WORK = 12
_EXPANSION = 2048
_MODES = {"1": "L", "P": "RGB", "PA": "RGBA", "CMYK": "RGB", "YCbCr": "RGB"}


def pillow() -> Any:
    """Return Pillow's image module.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    return require("PIL.Image", "this")


class Image(Codec):
    """Images of shape (height, width), or (height, width, channels) with 2 to 4 channels.

    Args:
        name: "jpg", "png" or "webp".
        quality: The quality of a lossy format, up to 100.
    """

    def __init__(self, name: str, quality: int = 90) -> None:
        self.name = name
        self.quality = quality

    def encode(self, value: Any) -> bytes:
        """Encode an array as a file; bytes must be a complete file and are stored unchanged."""
        data = given(self.name, value)
        if data is not None:
            check_whole(self.name, data)
            return data
        array = np.asarray(value)
        if array.dtype != np.uint8 or array.ndim not in (2, 3):
            raise TypeError(
                f"expected an image of height, width and channels in uint8, "
                f"got shape {array.shape} in {array.dtype}"
            )
        if array.shape[2:] == (1,):
            array = array[:, :, 0]
        self._check_shape(array.shape)
        stream = io.BytesIO()
        try:
            pillow().fromarray(array).save(stream, _FORMATS[self.name], quality=self.quality)
        except OSError as error:
            message = f"cannot encode an image of shape {array.shape} as {self.name}: {error}"
            raise ValueError(message) from error
        return stream.getvalue()

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        known = _COLOURS[self.name]
        colours = shape[2] if len(shape) == 3 else 1  # noqa: PLR2004
        if 0 in shape:
            raise ValueError(f"expected an image with at least one pixel, got shape {shape}")
        if colours not in known and len(shape) == 3:  # noqa: PLR2004
            hint = "; channels come last" if shape[0] in known else ""
            message = f"{self.name} has {' or '.join(map(str, known))} channels, got {shape}{hint}"
            raise ValueError(message)

    def decode(self, data: bytes) -> npt.NDArray[Any]:
        """Return the pixels."""
        decoded = self.decode_many(memoryview(data), np.array([0, len(data)]).tobytes())
        picture: npt.NDArray[Any] = self._by_pillow(data) if decoded is None else decoded[0]
        return picture

    def decode_list(self, cells: list[bytes]) -> list[npt.NDArray[Any]]:
        """Return the pixels of each image, decoded on all cores."""
        offsets = np.cumsum([0, *map(len, cells)]).tobytes()
        decoded = self.decode_many(memoryview(b"".join(cells)), offsets)
        return super().decode_list(cells) if decoded is None else list(decoded)

    def _by_pillow(self, data: bytes) -> npt.NDArray[Any]:
        images = pillow()
        try:
            with images.open(io.BytesIO(data), formats=[_FORMATS[self.name]]) as image:
                _check_size(image.size, len(data))
                mode = _MODES.get(image.mode, image.mode)
                if image.mode == "P" and "transparency" in image.info:
                    mode = "RGBA"
                return np.array(image if mode == image.mode else image.convert(mode))
        except images.UnidentifiedImageError as error:
            raise ValueError("Pillow cannot identify an image in it") from error
        except (
            images.DecompressionBombError,
            images.DecompressionBombWarning,
            SyntaxError,
        ) as error:
            raise ValueError(str(error)) from error

    def decode_many(self, data: memoryview, offsets: bytes) -> Any:
        """Return one array for images of the same size; otherwise a list of arrays."""
        if self.name not in _NATIVE:
            return None
        try:
            pixels, shapes = decode_pictures(self.name, data, offsets)
        except ValueError:
            return None
        return _pictures(pixels, shapes)


def _check_size(size: tuple[int, int], nbytes: int) -> None:
    pixels = _COLOURS_MAX * size[0] * size[1]
    check_decoded(_WORK * size[0] * size[1])
    if pixels > _EXPANSION * nbytes:
        raise ValueError(f"{size[0]} x {size[1]} pixels cannot come from {nbytes} bytes")


def _pictures(pixels: memoryview, shapes: list[tuple[int, int, int]]) -> Any:
    array = np.frombuffer(pixels, np.uint8)
    if len(set(shapes)) == 1:
        return array.reshape(len(shapes), *_shape(*shapes[0]))
    ends = np.cumsum([height * width * colours for height, width, colours in shapes])
    parts = zip(np.split(array, ends[:-1]), shapes, strict=True) if shapes else ()
    return [part.reshape(_shape(*shape)) for part, shape in parts]


def _shape(height: int, width: int, colours: int) -> tuple[int, ...]:
    return (height, width, colours) if colours > 1 else (height, width)
