"""Values in MessagePack: plain values, arrays, and trees with arrays in them.

An array is packed as the name of its dtype as numpy writes it (`<f4`), its shape, and its
elements in C order; within a tree, a `_` precedes these three.
"""

import re
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.array import size_of
from ingot.codecs.limit import check_msgpack
from ingot.extras import require

_TYPE = re.compile(r"[<>|][biufcSUV]\d{1,9}|[<>][mM]8(?:\[\d{0,9}[A-Za-z]{1,7}\])?")
_MARK = "_"
_MARKED = 4


@cache
def _msgpack() -> Any:
    return require("msgpack", "this type")


def encode_msgpack(value: Any) -> bytes:
    """Encode a value in MessagePack.

    Raises:
        TypeError: MessagePack has no form for it.
        ValueError: It could not be decoded: a key is neither text nor bytes.
    """
    packed: bytes = _msgpack().packb(value)
    decode_msgpack(packed)
    return packed


def decode_msgpack(buffer: bytes) -> Any:
    """Decode a value in MessagePack; tuples come back as lists.

    Raises:
        ValueError: The bytes are not MessagePack.
    """
    check_msgpack(buffer)
    msgpack = _msgpack()
    try:
        return msgpack.unpackb(buffer, strict_map_key=False)
    except (msgpack.UnpackException, TypeError) as error:
        message = f"invalid MessagePack: {error!r}"
        raise ValueError(message) from error


def encode_array(value: Any) -> bytes:
    """Encode the dtype, the shape and the elements of an array."""
    packed: bytes = _msgpack().packb(_parts(value))
    return packed


def decode_array(buffer: bytes) -> npt.NDArray[Any]:
    """Decode a read-only array.

    Raises:
        ValueError: The bytes are not an array, or an array of objects.
    """
    parts = decode_msgpack(buffer)
    if not _is_array(parts):
        message = "expected the dtype, the shape and the elements of an array"
        raise ValueError(message)
    return _array(*parts)


def encode_tree(value: Any) -> bytes:
    """Encode nested lists and dicts of values and arrays.

    Raises:
        ValueError: A list would come back as an array.
    """
    return encode_msgpack(_packed(value))


def decode_tree(buffer: bytes) -> Any:
    """Decode nested lists and dicts of values and arrays; tuples come back as lists.

    Raises:
        ValueError: The bytes are not such a tree.
    """
    try:
        return _unpacked(decode_msgpack(buffer))
    except RecursionError as error:
        message = "the tree is nested too deeply"
        raise ValueError(message) from error


def _parts(value: Any) -> tuple[str, tuple[int, ...], bytes]:
    array = np.asarray(value)
    if array.dtype.hasobject or not array.dtype.itemsize:
        message = "expected an array of numbers or text, got objects"
        raise TypeError(message)
    return array.dtype.str, array.shape, array.tobytes()


def _is_array(parts: Any) -> bool:
    if not isinstance(parts, list) or [type(part) for part in parts] != [str, list, bytes]:
        return False
    return all(type(length) is int for length in parts[1])


@lru_cache
def _dtype(kind: str) -> np.dtype[Any]:
    if _TYPE.fullmatch(kind) is None:
        message = f"expected an array of numbers or text, got dtype {kind!r}"
        raise ValueError(message)
    try:
        return np.dtype(kind)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _array(kind: str, shape: list[int], data: bytes) -> npt.NDArray[Any]:
    dtype = _dtype(kind)
    if size_of(dtype, shape) != len(data) or not dtype.itemsize:
        message = f"{len(data)} bytes do not match an array of {kind} of shape {shape}"
        raise ValueError(message)
    try:
        return np.ndarray(shape, dtype, data)
    except OverflowError as error:
        raise ValueError(str(error)) from error


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (_MARK, *_parts(value))
    if isinstance(value, dict):
        return {key: _packed(one) for key, one in value.items()}
    if not isinstance(value, list | tuple):
        return value
    packed = [_packed(one) for one in value]
    if _is_marked(packed):
        message = "a list of '_', a str, a list of ints and bytes would decode as an array"
        raise ValueError(message)
    return packed


def _is_marked(value: list[Any]) -> bool:
    return len(value) == _MARKED and value[0] == _MARK and _is_array(value[1:])


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unpacked(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    return _array(*value[1:]) if _is_marked(value) else [_unpacked(one) for one in value]
