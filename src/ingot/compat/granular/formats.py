"""`granular.formats`: encoding and decoding functions by type."""

from functools import partial
from typing import Any

import numpy as np

from ingot.codecs import granular
from ingot.codecs.granular import (
    DECODERS,
    ENCODERS,
    Decoder,
    Encoder,
    decode_array,
    decode_image,
    decode_int,
    decode_tree,
    decode_video,
    encode_array,
    encode_image,
    encode_int,
    encode_tree,
)

_GREY = 3
"""The number of dimensions of a gray video."""


def encode_video(
    array: Any,
    fps: int = 20,
    format: str | None = None,  # noqa: A002
    codec: str = "h264",
) -> bytes:
    """Encode a video as a file.

    Args:
        array: Frames of shape (time, height, width, 3), or (time, height, width) for gray
            frames, in uint8. Gray frames come back with three channels.
        fps: Frames per second.
        format: "mp4" or "webm"; None to choose it by the codec.
        codec: "h264" or "vp9".

    Raises:
        TypeError: The array is not a video.
    """
    frames = np.asarray(array)
    if frames.ndim == _GREY:
        frames = np.repeat(frames[..., np.newaxis], 3, axis=-1)
    return granular.encode_video(frames, fps, format, codec)


encoders: dict[str, Encoder] = {
    **ENCODERS,
    "mp4": partial(encode_video, format="mp4", codec="h264"),
    "webm": partial(encode_video, format="webm", codec="vp9"),
}
"""Encoding functions by type; you may add to it."""

decoders: dict[str, Decoder] = dict(DECODERS)
"""Decoding functions by type; you may add to it."""

__all__ = [
    "decode_array",
    "decode_image",
    "decode_int",
    "decode_tree",
    "decode_video",
    "decoders",
    "encode_array",
    "encode_image",
    "encode_int",
    "encode_tree",
    "encode_video",
    "encoders",
]
