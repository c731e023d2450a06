"""How values become bytes, by name: the types of a data set's fields."""

from ingot.codecs.array import Array, FixedArray
from ingot.codecs.codec import Codec
from ingot.codecs.image import Image
from ingot.codecs.registry import codec_of, register
from ingot.codecs.scalar import Bool, Float, Int
from ingot.codecs.text import Bytes, Json, Utf8

__all__ = [
    "Array",
    "Bool",
    "Bytes",
    "Codec",
    "FixedArray",
    "Float",
    "Image",
    "Int",
    "Json",
    "Utf8",
    "codec_of",
    "register",
]
