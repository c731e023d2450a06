"""Any Python object, as pickle."""

import pickle
from typing import Any

from ingot.codecs.codec import Codec


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
            message = f"the object cannot be pickled: {error}"
            raise TypeError(message) from error

    def decode(self, data: bytes) -> Any:
        """Return the object."""
        if not self.allowed:
            message = (
                "reading a pickle can execute any code; "
                "if you trust the file, pass allow_pickle=True to ingot.open"
            )
            raise ValueError(message)
        try:
            return pickle.loads(data)  # noqa: S301 -- the user has allowed it
        except Exception as error:  # Code in a pickle may raise anything.
            message = f"{type(error).__name__}: {error}"
            raise ValueError(message) from error
