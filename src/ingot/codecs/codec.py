"""What a codec has to offer."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class Codec(ABC):
    """Turns values of one type into bytes and back.

    A codec of one's own derives from this class and is made known by
    `ingot.codecs.register`. It must be safe to use from several threads at once.

    Attributes:
        name: What specifications call it, and what a file says of the field.
        dtype: The type of the elements, if every value is an array of the same shape whose
            bytes are the stored ones; else None.
        shape: The shape that goes with `dtype`; () for a single number.
    """

    name: str
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value.

        Raises:
            TypeError: The value is of another type.
            ValueError: The value does not fit.
        """

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """Return the value of bytes that `encode` has made.

        Raises:
            ValueError: They are no such bytes.
        """

    def __repr__(self) -> str:
        return f"<codec {self.name!r}>"
