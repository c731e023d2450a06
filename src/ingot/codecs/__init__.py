"""Codecs, the types of a data set's fields: they turn values into bytes and back."""

from ingot.codecs.array import Array, FixedArray
from ingot.codecs.audio import Audio
from ingot.codecs.codec import Codec
from ingot.codecs.image import Image
from ingot.codecs.objects import Json, Msgpack, Pickle
from ingot.codecs.registry import codec_of, register
from ingot.codecs.scalar import Bool, Float, Int
from ingot.codecs.text import Bytes, Utf8
from ingot.codecs.tree import Tree
from ingot.codecs.video import Video

__all__ = [
    "Array",
    "Audio",
    "Bool",
    "Bytes",
    "Codec",
    "FixedArray",
    "Float",
    "Image",
    "Int",
    "Json",
    "Msgpack",
    "Pickle",
    "Tree",
    "Utf8",
    "Video",
    "codec_of",
    "register",
]
