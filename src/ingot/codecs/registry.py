"""Codecs by their names."""

import re

from ingot.codecs.array import Array, FixedArray
from ingot.codecs.audio import Audio
from ingot.codecs.codec import Codec
from ingot.codecs.image import Image
from ingot.codecs.msgpack import Msgpack
from ingot.codecs.pickled import Pickle
from ingot.codecs.scalar import Bool, Float, Int
from ingot.codecs.text import Bytes, Json, Utf8
from ingot.codecs.tree import Tree
from ingot.codecs.video import Video

_NAME = re.compile(r"[a-z_][a-z0-9_.-]*")
_FIXED = re.compile(r"array\(\s*([a-z]+\d*)\s*((?:,\s*\d+\s*)*)\)")

_CODECS: dict[str, Codec] = {
    codec.name: codec
    for codec in (
        Int(),
        Float(),
        Bool(),
        Bytes(),
        Utf8(),
        Json(),
        Array(),
        Image("jpg"),
        Image("png"),
        Image("webp"),
        Msgpack(),
        Tree(),
        Audio("wav"),
        Audio("flac"),
        Video(),
    )
}


def register(codec: Codec) -> None:
    """Make a codec known by its name, in this process.

    Raises:
        ValueError: The name is taken by another codec, or cannot be one.
    """
    if _NAME.fullmatch(codec.name) is None:
        message = f"{codec.name!r} cannot be the name of a codec: lower case letters and digits"
        raise ValueError(message)
    if _CODECS.get(codec.name, codec) is not codec:
        message = f"there is a codec {codec.name!r} already"
        raise ValueError(message)
    _CODECS[codec.name] = codec


def codec_of(name: str) -> Codec:
    """Return the codec of a name, such as "utf8" or "array(uint8,64,64,3)".

    Raises:
        ValueError: There is none.
    """
    if name in _CODECS:
        return _CODECS[name]
    if name == Pickle.name:
        message = (
            "pickle, which can run any code when it is read, is a type only once "
            "ingot.codecs.register(ingot.codecs.Pickle()) has made it one"
        )
        raise ValueError(message)
    found = _FIXED.fullmatch(name)
    if name.startswith("array(") and "-" in name:
        message = f"{name!r}: a length is a number; arrays of varying shape are of type array"
        raise ValueError(message)
    if found is None:
        message = (
            f"there is no type {name!r}: {', '.join(sorted(_CODECS))}, array(TYPE,LENGTH,...), "
            "or what ingot.codecs.register has made known"
        )
        raise ValueError(message)
    try:
        return FixedArray(found[1], *(int(length) for length in found[2].split(",") if length))
    except TypeError as error:
        message = f"{name!r}: {error}"
        raise ValueError(message) from None
