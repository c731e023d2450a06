"""The interface of codecs."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Packed: TypeAlias = tuple[bytes | memoryview, bytes]
"""Values, concatenated, and where each begins and the last one ends, as int64."""


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

    @property
    def own(self) -> "Codec":
        """The codec with which Ingot's files store such values, if it is another one."""
        return self

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

    def encode_many(self, values: Sequence[Any] | npt.NDArray[Any]) -> Packed | None:  # noqa: ARG002
        """Encode many values at once, each to the bytes that `encode` returns for it.

        A class that overrides `encode` does not inherit this method: Ingot then encodes the
        values one by one, unless the class overrides this method too.

        Args:
            values: A list or a tuple, or an array whose first axis counts the values.

        Returns:
            The values, concatenated, and where each begins and the last one ends, as int64; or
            None, if the caller must encode the values one by one. This is the default;
            override it if there is a faster way.

        Raises:
            TypeError, ValueError: A value is refused; `encode` then finds which one.
        """
        return None

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


def encode_all(codec: Codec, values: Sequence[Any] | npt.NDArray[Any]) -> Packed:
    """Encode many values, at once if the codec can.

    Raises:
        TypeError, ValueError: A value is refused, or the codec breaks its contract.
    """
    packed = codec.encode_many(values) if has_own_many(type(codec)) else None
    if packed is None:
        cells = [codec.encode(one) for one in values]
        if not all(isinstance(cell, bytes) for cell in cells):
            raise TypeError("a codec must return bytes")
        return joined(cells)
    if len(packed[1]) != 8 * (len(values) + 1):
        raise ValueError("a codec must return an offset for each value")
    return packed


@lru_cache
def has_own_many(kind: type[Codec]) -> bool:
    """Whether `encode_many` does what `encode` does: no subclass overrides `encode` alone."""
    owner = next(one for one in kind.__mro__ if {"encode", "encode_many"} & vars(one).keys())
    return "encode_many" in vars(owner)


def joined(cells: Sequence[bytes]) -> Packed:
    """Concatenate encoded values."""
    return b"".join(cells), offsets_of(map(len, cells))


def offsets_of(lengths: Iterable[int]) -> bytes:
    """Return where each of many values begins, and where the last one ends, as int64."""
    return np.cumsum([0, *lengths], dtype=np.int64).tobytes()


def cells_of(array: npt.NDArray[Any]) -> Packed:
    """Return the bytes of an array as values of one size, one for each step of its first axis.

    The bytes are not copied if the array is contiguous.
    """
    size = array.nbytes // len(array) if len(array) else 0
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return data, (np.arange(len(array) + 1, dtype=np.int64) * size).tobytes()
