"""`granular.formats`: encoding and decoding functions by type."""

from ingot.formats.granular.codecs import (
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
    encode_video,
)

encoders: dict[str, Encoder] = dict(ENCODERS)
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
