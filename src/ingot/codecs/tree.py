"""Nested dicts, lists and tuples, with arrays, numbers, text and bytes in them.

Stored as four bytes little-endian for the length of a text, that text, and the bytes of all
arrays and bytes objects in the order in which the text refers to them. The text is JSON:
lists, text, numbers, booleans and None as themselves, everything else as an object with one
member whose name gives the type.
"""

import json
import math
from typing import Any

import numpy as np

from ingot.codecs.array import array_of, dtype_of, elements, size_of, stored_dtype
from ingot.codecs.codec import Codec
from ingot.codecs.limit import check_json

_HEAD = 4


class Tree(Codec):
    """Nested values. Decoding restores their types, including numpy scalars."""

    name = "tree"
    takes_none = True

    def encode(self, value: Any) -> bytes:
        """Encode a value as text and bytes."""
        parts: list[bytes] = []
        try:
            tree = _node(value, parts)
            text = json.dumps(tree, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        except RecursionError as error:
            raise ValueError("the tree is nested too deeply") from error
        head = text.encode()
        return b"".join([len(head).to_bytes(_HEAD, "little"), head, *parts])

    def decode(self, data: bytes) -> Any:
        """Return the value."""
        start = _HEAD + int.from_bytes(data[:_HEAD], "little")
        if len(data) < max(start, _HEAD):
            raise ValueError("the tree is truncated")
        rest = _Bytes(memoryview(data)[start:])
        check_json(data[_HEAD:start])
        try:
            value = _value(json.loads(data[_HEAD:start], parse_constant=_refused), rest)
        except RecursionError as error:
            message = "the tree is nested too deeply"
            raise ValueError(message) from error
        rest.close()
        return value


class _Bytes:
    """A buffer that is consumed from the front."""

    def __init__(self, data: memoryview) -> None:
        self._data = data

    def take(self, count: int) -> memoryview:
        if not 0 <= count <= len(self._data):
            message = f"the tree is truncated: expected {count} bytes, got {len(self._data)}"
            raise ValueError(message)
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def close(self) -> None:
        if self._data:
            raise ValueError(f"{len(self._data)} bytes remain after the end of the tree")


def _node(value: Any, parts: list[bytes]) -> Any:  # noqa: PLR0911
    """Return the JSON node of a value; append its bytes to `parts`."""
    match value:
        case np.ndarray() | np.generic():
            array = array_of(value)
            dtype = stored_dtype(array.dtype)
            parts.append(array.astype(dtype, copy=False).tobytes())
            node: list[Any] = [dtype.str, *array.shape]
            return {"array" if isinstance(value, np.ndarray) else "number": node}
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": str(value)}
        case bytes():
            parts.append(value)
            return {"bytes": len(value)}
        case dict():
            return {"dict": {_key(key): _node(one, parts) for key, one in value.items()}}
        case tuple():
            return {"tuple": [_node(one, parts) for one in value]}
        case list():
            return [_node(one, parts) for one in value]
    raise TypeError(
        "expected a tree of dict, list, tuple, array, number, str, bytes and None, "
        f"got {type(value).__name__}"
    )


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"expected str keys in the dicts of a tree, got {type(key).__name__}")
    return key


def _value(node: Any, rest: _Bytes) -> Any:  # noqa: PLR0911
    """Return the value of a JSON node."""
    match node:
        case list():
            return [_value(one, rest) for one in node]
        case {"dict": dict(inner), **others} if not others:
            return {key: _value(one, rest) for key, one in inner.items()}
        case {"tuple": list(inner), **others} if not others:
            return tuple([_value(one, rest) for one in inner])
        case {"array": [str(kind), *shape], **others} if not others:
            return _array(kind, shape, rest)
        case {"number": [str(kind)], **others} if not others:
            return _array(kind, [], rest)[()]
        case {"bytes": int(count), **others} if not others and type(count) is int:
            return bytes(rest.take(count))
        case {"float": "nan" | "inf" | "-inf" as text, **others} if not others:
            return float(text)
        case dict():
            raise ValueError(f"unknown type in a tree: {', '.join(node) or 'an empty object'}")
    return node


def _array(kind: str, shape: list[Any], rest: _Bytes) -> Any:
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"an array in the tree has the invalid shape {shape}")
    dtype = dtype_of(kind)
    return elements(dtype, tuple(shape), rest.take(size_of(dtype, shape)))


def _refused(constant: str) -> Any:
    raise ValueError(f"the tree contains {constant}, which is not valid JSON")
