"""The types of Granular's data sets: encoding and decoding functions by name."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ingot.codecs.codec import Codec
from ingot.codecs.registry import codec_of
from ingot.formats.granular.codecs.number import decode_int, encode_int
from ingot.formats.granular.codecs.packed import (
    decode_array,
    decode_msgpack,
    decode_tree,
    encode_array,
    encode_msgpack,
    encode_tree,
)
from ingot.formats.granular.codecs.picture import decode_image, encode_image
from ingot.formats.granular.codecs.text import decode_bytes, decode_utf8, encode_bytes, encode_utf8
from ingot.formats.granular.codecs.video import decode_video, encode_video

Encoder: TypeAlias = Callable[[Any], bytes]
"""Returns the stored form of a value."""
Decoder: TypeAlias = Callable[[bytes], Any]
"""Returns the value of a stored form."""

ENCODERS: Mapping[str, Encoder] = {
    "bytes": encode_bytes,
    "utf8": encode_utf8,
    "msgpack": encode_msgpack,
    "int": encode_int,
    "i64": partial(encode_int, size=8, signed=True),
    "u64": partial(encode_int, size=8, signed=False),
    "array": encode_array,
    "tree": encode_tree,
    "jpg": partial(encode_image, format="jpg"),
    "png": partial(encode_image, format="png"),
    "mp4": partial(encode_video, format="mp4", codec="h264"),
    "webm": partial(encode_video, format="webm", codec="vp9"),
}
"""The encoding functions of Granular's types."""

DECODERS: Mapping[str, Decoder] = {
    "bytes": decode_bytes,
    "utf8": decode_utf8,
    "msgpack": decode_msgpack,
    "int": decode_int,
    "i64": partial(decode_int, size=8, signed=True),
    "u64": partial(decode_int, size=8, signed=False),
    "array": decode_array,
    "tree": decode_tree,
    "jpg": decode_image,
    "png": decode_image,
    "mp4": decode_video,
    "webm": decode_video,
}
"""The decoding functions of Granular's types."""

_OWN = {"i64": "int", "u64": "array(uint64)", "webm": "bytes"}
"""What types of Granular become that Ingot does not have."""


class GranularCodec(Codec):
    """One of Granular's types.

    Args:
        name: Granular's name of the type.

    Raises:
        KeyError: Granular has no such type.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._encode = ENCODERS[name]
        self._decode = DECODERS[name]

    @property
    def own(self) -> Codec:
        """The codec that Ingot has for such values."""
        return codec_of(_OWN.get(self.name, self.name))

    def encode(self, value: Any) -> bytes:
        """Encode a value as Granular does."""
        return self._encode(value)

    def decode(self, data: bytes) -> Any:
        """Decode bytes that Granular stored; arrays may be changed."""
        value = self._decode(data)
        is_view = isinstance(value, np.ndarray) and not value.flags.writeable
        return value.copy() if is_view else value


__all__ = [
    "DECODERS",
    "ENCODERS",
    "Decoder",
    "Encoder",
    "GranularCodec",
    "decode_array",
    "decode_bytes",
    "decode_image",
    "decode_int",
    "decode_msgpack",
    "decode_tree",
    "decode_utf8",
    "decode_video",
    "encode_array",
    "encode_bytes",
    "encode_image",
    "encode_int",
    "encode_msgpack",
    "encode_tree",
    "encode_utf8",
    "encode_video",
]
