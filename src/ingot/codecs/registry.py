"""Codecs by name."""

import re

from ingot.codecs.array import Array, FixedArray
from ingot.codecs.audio import Audio
from ingot.codecs.codec import Codec
from ingot.codecs.image import Image
from ingot.codecs.objects import Json, Msgpack, Pickle
from ingot.codecs.scalar import Bool, Float, Int
from ingot.codecs.text import Bytes, Utf8
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
    """Register a codec under its name, in this process.

    Raises:
        ValueError: The name is invalid, or another codec has it.
    """
    if _NAME.fullmatch(codec.name) is None:
        message = f"{codec.name!r} is not a valid codec name: use lower case letters and digits"
        raise ValueError(message)
    if _CODECS.get(codec.name, codec) is not codec:
        raise ValueError(f"a codec named {codec.name!r} is already registered")
    _CODECS[codec.name] = codec


def codec_of(name: str) -> Codec:
    """Return the codec with a name such as "utf8" or "array(uint8,64,64,3)".

    Raises:
        ValueError: The type is unknown.
    """
    if name in _CODECS:
        return _CODECS[name]
    if name == Pickle.name:
        raise ValueError(
            "pickle can execute any code when it is read; to use it as a type, call "
            "ingot.codecs.register(ingot.codecs.Pickle())"
        )
    found = _FIXED.fullmatch(name)
    if name.startswith("array(") and "-" in name:
        message = f"{name!r}: a length must be a number; for arrays of varying shape, use array"
        raise ValueError(message)
    if found is None:
        raise ValueError(
            f"unknown type {name!r}: expected {', '.join(sorted(_CODECS))}, "
            "array(TYPE,LENGTH,...), or a type added with ingot.codecs.register"
        )
    try:
        return FixedArray(found[1], *(int(length) for length in found[2].split(",") if length))
    except TypeError as error:
        raise ValueError(f"{name!r}: {error}") from None
