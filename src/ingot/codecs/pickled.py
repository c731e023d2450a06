"""Any object of Python, by pickle."""

import pickle
from typing import Any

from ingot.codecs.codec import Codec


class Pickle(Codec):
    """Objects as pickle writes them.

    Not among the types that have names from the start: reading a pickle can run any code.
    It is made known by `ingot.codecs.register(ingot.codecs.Pickle())`, or given to a
    specification as it is, and read only from what was opened with `allow_pickle=True`.

    Args:
        allowed: Whether it reads.
    """

    name = "pickle"
    takes_none = True

    def __init__(self, *, allowed: bool = True) -> None:
        self.allowed = allowed

    def encode(self, value: Any) -> bytes:
        """Return the pickle of an object."""
        try:
            return pickle.dumps(value, protocol=5)
        except (pickle.PicklingError, AttributeError, RecursionError) as error:
            message = f"an object that cannot be pickled: {error}"
            raise TypeError(message) from error

    def decode(self, data: bytes) -> Any:
        """Return the object."""
        if not self.allowed:
            message = (
                "it can run any code when it is read; "
                "whoever trusts the file says ingot.open(..., allow_pickle=True)"
            )
            raise ValueError(message)
        try:
            return pickle.loads(data)  # noqa: S301 -- the user has said so
        except Exception as error:  # Whatever the code in it does.
            message = f"{type(error).__name__}: {error}"
            raise ValueError(message) from error
