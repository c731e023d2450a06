"""`granular.formats`: values to bytes and back, by the names of types."""

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
    encode_video,
)

encoders: dict[str, Encoder] = dict(ENCODERS)
"""Functions to bytes, by type; yours to extend."""

decoders: dict[str, Decoder] = dict(DECODERS)
"""Functions from bytes, by type; yours to extend."""

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
