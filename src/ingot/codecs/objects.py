"""Python objects, as JSON, msgpack or pickle."""

import json
import pickle
from typing import Any

from ingot.codecs.codec import Codec
from ingot.codecs.limit import check_json, check_msgpack
from ingot.extras import require


class Json(Codec):
    """Any JSON value."""

    name = "json"
    takes_none = True

    def encode(self, value: Any) -> bytes:
        """Encode a value as JSON."""
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        except RecursionError as error:
            raise ValueError("the value is nested too deeply for JSON") from error
        return text.encode()

    def decode(self, data: bytes) -> Any:
        """Return the value; tuples come back as lists."""
        check_json(data)
        try:
            return json.loads(data)
        except RecursionError as error:
            raise ValueError("the JSON is nested too deeply") from error


class Msgpack(Codec):
    """Dicts, lists, text, bytes, numbers, booleans and None, stored as msgpack."""

    name = "msgpack"
    takes_none = True

    def encode(self, value: Any) -> bytes:
        """Encode a value as msgpack."""
        try:
            packed: bytes = _msgpack().packb(value)
        except OverflowError as error:
            raise ValueError("an integer does not fit into 64 bits") from error
        return packed

    def decode(self, data: bytes) -> Any:
        """Return the value; tuples come back as lists."""
        check_msgpack(data)
        try:
            return _msgpack().unpackb(data, strict_map_key=False)
        except (TypeError, OverflowError) as error:
            raise ValueError(str(error)) from error


class Pickle(Codec):
    """Objects, stored as pickle.

    Not registered by default, because reading a pickle can execute any code. Call
    `ingot.codecs.register(ingot.codecs.Pickle())`, or pass an instance in a specification.
    Readers decode it only if the file was opened with `allow_pickle=True`.

    Args:
        allowed: Whether this codec may decode.
    """

    name = "pickle"
    takes_none = True

    def __init__(self, *, allowed: bool = True) -> None:
        self.allowed = allowed

    def encode(self, value: Any) -> bytes:
        """Pickle an object."""
        try:
            return pickle.dumps(value, protocol=5)
        except (pickle.PicklingError, AttributeError, RecursionError) as error:
            raise TypeError(f"the object cannot be pickled: {error}") from error

    def decode(self, data: bytes) -> Any:
        """Return the object."""
        if not self.allowed:
            raise ValueError(
                "reading a pickle can execute any code; "
                "if you trust the file, pass allow_pickle=True to ingot.open"
            )
        try:
            return pickle.loads(data)  # noqa: S301 -- the user has allowed it
        except Exception as error:  # Code in a pickle may raise anything.
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _msgpack() -> Any:
    return require("msgpack", "this type")
