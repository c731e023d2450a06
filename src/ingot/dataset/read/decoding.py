"""Decoding of one row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from ingot.dataset.read.source import ALL, Elements
from ingot.dataset.spec import Field
from ingot.errors import FormatError

Stored: TypeAlias = bytes | list[bytes]
"""The value of a field in a file; a list for a sequence."""

Asked: TypeAlias = tuple[int, int | None, int | None, int | None]
"""The position of a field, and the elements to read of it."""


def decode(field: Field, stored: Stored, path: str, number: int) -> Any:
    """Decode the stored value of a field.

    Raises:
        FormatError: Its codec cannot decode it.
    """
    try:
        return decoder(field)(stored)
    except (ValueError, OSError) as error:
        raise undecodable(field, path, number, error) from error


def decoder(field: Field) -> Callable[[Any], Any]:
    """Return the function that decodes the stored value of a field in one row."""
    if field.kind == "sequence":
        return field.codec.decode_list
    if field.is_sequence:
        return lambda stored: np.frombuffer(bytearray(stored), field.codec.dtype)
    return field.codec.decode


def undecodable(field: Field, path: str, number: int, error: Exception) -> FormatError:
    """Return the error for a value that its codec cannot decode."""
    message = f"{path}: row {number}: field {field.name!r} is not valid {field.type}: {error}"
    return FormatError(message, path)


class RowSource(Protocol):
    """A source of single rows."""

    def read_row(self, index: int, wanted: list[Asked], /) -> Any:
        """Return the stored value of each field: bytes, or a list of bytes for a sequence."""


class RowPlan:
    """How some fields of one row are read.

    Args:
        fields: The fields.
        places: The position of each field in the source.
    """

    def __init__(self, fields: Iterable[Field], places: Mapping[str, int]) -> None:
        self._steps = [(field, decoder(field), places[field.name]) for field in fields]
        optional = [field.name for field, *_ in self._steps if field.is_optional]
        self._flags = [(places[f"{name}?"], *ALL) for name in optional]
        self._present = {name: len(self._steps) + k for k, name in enumerate(optional)}

    def read(
        self, source: RowSource, path: str, number: int, wanted: Sequence[Elements]
    ) -> dict[str, Any]:
        """Return the fields of a row; missing values are None.

        Args:
            source: The source of the row.
            path: The name of the source in errors.
            number: The number of the row.
            wanted: The elements to read of each field.

        Raises:
            FormatError: A codec cannot decode a value.
        """
        asked = [
            (place, *(elements if field.kind == "sequence" else ALL))
            for (field, _, place), elements in zip(self._steps, wanted, strict=True)
        ]
        stored = source.read_row(number, asked + self._flags)
        found: dict[str, Any] = {}
        try:
            for k, (field, decode_one, _) in enumerate(self._steps):
                name = field.name
                if name in self._present and stored[self._present[name]] == b"\0":
                    found[name] = None
                    continue
                value = decode_one(stored[k])
                is_cut = wanted[k] != ALL and field.kind == "cell"
                found[name] = value[slice(*wanted[k])] if is_cut else value
        except (ValueError, OSError) as error:
            raise undecodable(field, path, number, error) from error
        return found
