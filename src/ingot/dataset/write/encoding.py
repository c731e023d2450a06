"""Encoding of one row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ingot.dataset.nested import DOT
from ingot.dataset.read.decoding import Stored, decoder
from ingot.dataset.spec import Field, Spec


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
