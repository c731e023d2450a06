"""One row on its way to a file and back."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError

Stored: TypeAlias = bytes | list[bytes]


def encode(spec: Spec, number: int, row: object) -> list[Stored]:
    """Return what is stored of a row, field by field.

    Raises:
        TypeError: A value is of another type than its field.
        ValueError: A value does not fit, or fields are missing or unknown.
    """
    if not isinstance(row, Mapping):
        message = f"row {number}: a row is a dict, not {type(row).__name__}"
        raise TypeError(message)
    if unknown := [name for name in row if name not in spec.fields]:
        message = f"row {number}: there is no field {unknown[0]!r} in {spec!r}"
        raise ValueError(message)
    values, present = [], []
    for field in spec.fields.values():
        value = row.get(field.name)
        if value is None and not (field.name in row and field.type == "json"):
            if not field.is_optional:
                message = f"row {number}: field {field.name!r} is missing"
                raise ValueError(message)
            values.append(_absent(field))
            present.append(b"\0")
            continue
        values.append(_encoded(field, number, value))
        present += [b"\1"] if field.is_optional else []
    return values + present


def _absent(field: Field) -> Stored:
    if field.kind == "sequence":
        return []
    return bytes(field.width or 0)


def _encoded(field: Field, number: int, value: Any) -> Stored:
    try:
        if not field.is_sequence:
            return field.codec.encode(value)
        values = _values(value)
        if field.kind == "cell":
            return _numbers(field, values)
        return [field.codec.encode(one) for one in values]
    except (TypeError, ValueError) as error:
        message = f"row {number}: field {field.name!r}: {error}"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(message) from error


def _values(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        message = f"a list of values, not {type(value).__name__}"
        raise TypeError(message)
    return value


def _numbers(field: Field, value: Iterable[Any]) -> bytes:
    """Return numbers as one run of bytes; an array of their type is taken as a whole."""
    if isinstance(value, np.ndarray) and value.dtype == field.codec.dtype and value.ndim == 1:
        return value.tobytes()
    return b"".join(field.codec.encode(one) for one in value)


def decode(field: Field, stored: list[bytes], path: str, number: int) -> Any:
    """Return the value of a field of a row from the cells that were read of it.

    Raises:
        FormatError: They are not what the codec of the field has made.
    """
    try:
        if field.kind == "sequence":
            return [field.codec.decode(one) for one in stored]
        if field.is_sequence:
            return np.frombuffer(stored[0], field.codec.dtype)
        return field.codec.decode(stored[0])
    except (ValueError, OSError) as error:
        message = f"{path}: row {number}: field {field.name!r} is no {field.type}: {error}"
        raise FormatError(message, path) from error
