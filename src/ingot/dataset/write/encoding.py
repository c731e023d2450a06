"""Encoding and decoding of one row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from ingot.dataset.nested import DOT
from ingot.dataset.read.source import ALL, Elements
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError

Stored: TypeAlias = bytes | list[bytes]
Asked: TypeAlias = tuple[int, int | None, int | None, int | None]
"""The position of a field, and the elements to read of it."""


def encode(spec: Spec, number: int, row: object) -> list[Stored]:
    """Encode a row, field by field.

    Raises:
        TypeError: A value does not have the type of its field.
        ValueError: A value does not fit, or fields are missing or unknown.
    """
    if type(row) is not dict and not isinstance(row, Mapping):
        message = f"row {number}: a row must be a dict, got {type(row).__name__}"
        raise TypeError(message)
    fields = spec.fields
    given = row if type(row) is dict and not spec.groups else flat(spec, row)
    check_names(spec, number, given)
    values, present = [], []
    for name, field in fields.items():
        value = given.get(name)
        if value is None and not (name in given and field.takes_none):
            if not field.is_optional:
                optional = f'; declare it "{field.type}?" if it may be'
                message = f"row {number}: field {name!r} is missing{optional}"
                raise ValueError(message)
            values.append(_absent(field))
            present.append(b"\0")
            continue
        values.append(_encoded(field, number, value))
        if field.is_optional:
            present.append(b"\1")
    return values + present


def check_names(spec: Spec, number: int, given: Mapping[Any, Any]) -> None:
    """Refuse a row that has other fields.

    Raises:
        ValueError: It has.
    """
    if not given.keys() <= spec.fields.keys():
        unknown = next(name for name in given if name not in spec.fields)
        message = f"row {number}: unknown field {unknown!r}, not in {spec!r}"
        raise ValueError(message)


def flat(spec: Spec, row: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the values of a row, or its columns, by the full names of their fields."""
    return dict(_flat(spec, row))


def _flat(spec: Spec, row: Mapping[Any, Any], above: str = "") -> Iterator[tuple[Any, Any]]:
    for key, value in row.items():
        name = f"{above}{DOT}{key}" if above else key
        if name in spec.groups and isinstance(value, Mapping):
            yield from _flat(spec, value, name)
        elif name not in spec.groups or value is not None:
            yield name, value


def _absent(field: Field) -> Stored:
    if field.kind == "sequence":
        return []
    return bytes(field.width or 0)


def _encoded(field: Field, number: int, value: Any) -> Stored:
    try:
        if not field.is_sequence:
            return _checked(field, field.codec.encode(value))
        values = elements(value)
        if field.kind == "cell":
            return _numbers(field, values)
        return [_checked(field, field.codec.encode(one)) for one in values]
    except (TypeError, ValueError) as error:
        message = f"row {number}: field {field.name!r}: {error}"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(message) from error


def _checked(field: Field, stored: Any) -> bytes:
    """Return what a codec has made of a value, if a file can store it."""
    if not isinstance(stored, bytes):
        message = f"its codec must return bytes, got {type(stored).__name__}"
        raise TypeError(message)
    if field.width is not None and len(stored) != field.width:
        message = f"its codec must return {field.width} bytes, got {len(stored)}"
        raise ValueError(message)
    return stored


def elements(value: Any) -> Iterable[Any]:
    """Return the elements of a sequence.

    Raises:
        TypeError: It is not a sequence, but text or a single value.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        message = f"expected a list of values, got {type(value).__name__}"
        raise TypeError(message)
    return value


def _numbers(field: Field, value: Iterable[Any]) -> bytes:
    """Return numbers as one run of bytes; an array with the dtype of the field is fastest."""
    if isinstance(value, np.ndarray) and value.dtype == field.codec.dtype and value.ndim == 1:
        return value.tobytes()
    return b"".join(field.codec.encode(one) for one in value)


def check(spec: Spec, number: int, stored: Sequence[Stored]) -> None:
    """Refuse a row with a value that cannot be decoded.

    Raises:
        ValueError: It has one.
    """
    for field, one in zip(spec.fields.values(), stored, strict=False):
        if field.is_optional and not one:
            continue
        try:
            decoder(field)(one)
        except (ValueError, OSError) as error:
            message = f"row {number}: field {field.name!r} cannot be decoded: {error}"
            raise ValueError(message) from error


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


class Plan:
    """Fields of a row that are read together.

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
