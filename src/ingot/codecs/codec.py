"""The interface of codecs."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class Codec(ABC):
    """Turns values of one type into bytes and back.

    Derive your own codecs from this class, and pass them to `ingot.codecs.register`. A codec
    must be safe to use from several threads at once.

    Attributes:
        name: The name of the type in specifications and files.
        dtype: The dtype of the elements, if every value is an array of the same shape that is
            stored as its bytes; else None.
        shape: The shape that goes with `dtype`; () for a single number.
        takes_none: Whether None is a value like any other, rather than a missing one.
    """

    name: str
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    takes_none: bool = False

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """Encode a value.

        Raises:
            TypeError: The value has the wrong type.
            ValueError: The value does not fit.
        """

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """Decode bytes that `encode` returned.

        Raises:
            ValueError: The bytes are invalid.
        """

    def decode_list(self, cells: list[bytes]) -> list[Any]:
        """Decode the elements of a sequence."""
        return [self.decode(cell) for cell in cells]

    def decode_many(self, data: memoryview, offsets: bytes) -> Any:  # noqa: ARG002
        """Decode many cells to a list, or to one array of all.

        Args:
            data: The cells, concatenated.
            offsets: Where each begins, and where the last one ends, as int64.

        Returns:
            None, if the caller must decode the cells one by one. This is the default;
            override it if there is a faster way.
        """
        return None

    def __repr__(self) -> str:
        return f"<codec {self.name!r}>"
