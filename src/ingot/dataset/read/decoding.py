"""Decoding of one row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ingot._core import RowPlan as NativeRowPlan
from ingot._core import Rows
from ingot.codecs.codec import Codec
from ingot.codecs.scalar import Bool, Float, Int
from ingot.codecs.text import Bytes, Utf8
from ingot.dataset.read.source import ALL, Elements, Row
from ingot.dataset.spec import Field
from ingot.errors import FormatError

Stored: TypeAlias = bytes | list[bytes]
"""The value of a field in a file; a list for a sequence."""

_NATIVE: dict[type[Codec], str] = {codec: codec.name for codec in (Bool, Bytes, Float, Int, Utf8)}
"""Codecs of which the engine makes the values of one row itself."""


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


class RowPlan:
    """How some fields of one row are read.

    Args:
        fields: The fields.
        places: The position of each field in the source.
        path: The name of the source in errors.
    """

    def __init__(self, fields: Iterable[Field], places: Mapping[str, int], path: str) -> None:
        self._fields = {field.name: field for field in fields}
        steps = [
            (
                name,
                places[name],
                places[f"{name}?"] if field.is_optional else None,
                "other" if field.is_sequence else _NATIVE.get(type(field.codec), "other"),
                decoder(field),
            )
            for name, field in self._fields.items()
        ]
        self._native = NativeRowPlan(steps, partial(_undecodable, self._fields, path))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(self._fields)

    def read(self, source: Rows, number: int, wanted: Sequence[Elements] | None) -> Row:
        """Return the fields of a row; missing values are None.

        Args:
            source: The files.
            number: The number of the row.
            wanted: The elements to read of each field, or None for all.

        Raises:
            FormatError: A codec cannot decode a value.
        """
        if wanted is None:
            return source.read_row(number, self._native, None)
        each = list(zip(self._fields.values(), wanted, strict=True))
        stored = [elements if field.kind == "sequence" else ALL for field, elements in each]
        found = source.read_row(number, self._native, stored)
        for field, elements in each:
            if field.kind == "cell" and elements != ALL and found[field.name] is not None:
                found[field.name] = found[field.name][slice(*elements)]
        return found


def _undecodable(
    fields: Mapping[str, Field], path: str, name: str, number: int, error: Exception
) -> FormatError:
    return undecodable(fields[name], path, number, error)
