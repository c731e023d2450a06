"""Values in MessagePack: plain ones, arrays, and arrays within plain ones.

An array is packed as the name of its type as numpy writes it (`<f4`), its shape, and its
elements in C order; within a tree there is a `_` in front of these three.
"""

import re
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.array import size_of

_TYPE = re.compile(r"[<>|][biufcSUV]\d{1,9}|[<>][mM]8(?:\[\d{0,9}[A-Za-z]{1,7}\])?")
_MARK = "_"
_MARKED = 4


@cache
def _msgpack() -> ModuleType:
    try:
        return import_module("msgpack")
    except ImportError as error:
        message = "this type needs msgpack: pip install 'ingot[msgpack]'"
        raise ImportError(message) from error


def encode_msgpack(value: Any) -> bytes:
    """Return a value in MessagePack.

    Raises:
        TypeError: MessagePack has no form for it.
        ValueError: It could not be read again: keys are text or bytes.
    """
    packed: bytes = _msgpack().packb(value)
    decode_msgpack(packed)
    return packed


def decode_msgpack(buffer: bytes) -> Any:
    """Return a value of its form in MessagePack; tuples come back as lists.

    Raises:
        ValueError: They are no such bytes.
    """
    msgpack = _msgpack()
    try:
        return msgpack.unpackb(buffer)
    except msgpack.UnpackException as error:
        message = f"no MessagePack: {error!r}"
        raise ValueError(message) from error


def encode_array(value: Any) -> bytes:
    """Return the type, the shape and the elements of an array."""
    packed: bytes = _msgpack().packb(_parts(value))
    return packed


def decode_array(buffer: bytes) -> npt.NDArray[Any]:
    """Return an array, which cannot be written to.

    Raises:
        ValueError: They are no bytes of an array, or of one of objects.
    """
    parts = decode_msgpack(buffer)
    if not _is_array(parts):
        message = "an array has the name of a type, a shape, and elements"
        raise ValueError(message)
    return _array(*parts)


def encode_tree(value: Any) -> bytes:
    """Return lists and dicts of values and arrays.

    Raises:
        ValueError: A list would come back as an array.
    """
    return encode_msgpack(_packed(value))


def decode_tree(buffer: bytes) -> Any:
    """Return lists and dicts of values and arrays; tuples come back as lists.

    Raises:
        ValueError: They are no such bytes.
    """
    try:
        return _unpacked(decode_msgpack(buffer))
    except RecursionError as error:
        message = "a tree that is nested too deeply"
        raise ValueError(message) from error


def _parts(value: Any) -> tuple[str, tuple[int, ...], bytes]:
    array = np.asarray(value)
    if array.dtype.hasobject or not array.dtype.itemsize:
        message = "an array of numbers or text, not of objects"
        raise TypeError(message)
    return array.dtype.str, array.shape, array.tobytes()


def _is_array(parts: Any) -> bool:
    if not isinstance(parts, list) or [type(part) for part in parts] != [str, list, bytes]:
        return False
    return all(type(length) is int for length in parts[1])


@lru_cache
def _dtype(kind: str) -> np.dtype[Any]:
    if _TYPE.fullmatch(kind) is None:
        message = f"an array of the type {kind!r}, which is none of numbers or text"
        raise ValueError(message)
    try:
        return np.dtype(kind)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _array(kind: str, shape: list[int], data: bytes) -> npt.NDArray[Any]:
    dtype = _dtype(kind)
    if size_of(dtype, shape) != len(data) or not dtype.itemsize:
        message = f"an array of {kind} of shape {shape} does not have {len(data)} bytes"
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
        message = "a list of '_', a text, a list of integers and bytes would pass for an array"
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
