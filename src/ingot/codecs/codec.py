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
        takes_none: Whether None is a value like others, and not one that is missing.
    """

    name: str
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    takes_none: bool = False

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

    def decode_list(self, cells: list[bytes]) -> list[Any]:
        """Return the values of the elements of a sequence."""
        return [self.decode(cell) for cell in cells]

    def decode_many(self, data: memoryview, offsets: bytes) -> Any:  # noqa: ARG002
        """Return the values of many cells: a list, or one array of all.

        Args:
            data: The cells, one behind the other.
            offsets: Where each begins, and where the last one ends, as int64.

        Returns:
            None, if they have to be decoded one by one: as this method does, unless a codec
            has a better one.
        """
        return None

    def __repr__(self) -> str:
        return f"<codec {self.name!r}>"
