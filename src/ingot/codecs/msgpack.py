"""Values in msgpack."""

from typing import Any

from ingot.codecs.codec import Codec
from ingot.codecs.limit import check_msgpack
from ingot.extras import require


def _msgpack() -> Any:
    return require("msgpack", "this type")


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
