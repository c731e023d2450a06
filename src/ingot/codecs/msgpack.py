"""Values in msgpack."""

from importlib import import_module
from types import ModuleType
from typing import Any

from ingot.codecs.codec import Codec
from ingot.codecs.limit import check_msgpack


def _msgpack() -> ModuleType:
    try:
        return import_module("msgpack")
    except ImportError as error:
        message = "this type requires msgpack: pip install 'ingot[msgpack]'"
        raise ImportError(message) from error


class Msgpack(Codec):
    """Dicts, lists, text, bytes, numbers, booleans and None, stored as msgpack."""

    name = "msgpack"
    takes_none = True

    def encode(self, value: Any) -> bytes:
        """Encode a value as msgpack."""
        try:
            packed: bytes = _msgpack().packb(value)
        except OverflowError as error:
            message = "an integer does not fit into 64 bits"
            raise ValueError(message) from error
        return packed

    def decode(self, data: bytes) -> Any:
        """Return the value; tuples come back as lists."""
        check_msgpack(data)
        try:
            return _msgpack().unpackb(data, strict_map_key=False)
        except (TypeError, OverflowError) as error:
            raise ValueError(str(error)) from error
