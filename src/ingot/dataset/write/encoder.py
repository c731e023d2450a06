"""Encodes rows, one at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ingot.codecs.codec import encode_all
from ingot.dataset.nested import DOT
from ingot.dataset.read.values import decoder
from ingot.dataset.spec import Field, Spec
from ingot.dataset.write.packed import Cells


class Encoder:
    """Encodes rows with the fields of a specification.

    Args:
        spec: The fields.
        check: Whether to decode every value once.
    """

    def __init__(self, spec: Spec, *, check: bool = False) -> None:
        self.spec = spec
        self.check = check
        self._has_groups = bool(spec.groups)
        self._steps = [(name, one, _encoder(one), one.width) for name, one in spec.fields.items()]

    def encode(self, number: int, row: object) -> list[Cells]:
        """Encode a row, field by field.

        Args:
            number: The number of the row, for errors.
            row: The values by name.

        Raises:
            TypeError: A value does not have the type of its field.
            ValueError: A value does not fit, or fields are missing or unknown.
        """
        if type(row) is dict and not self._has_groups:
            given: dict[Any, Any] = row
        elif isinstance(row, Mapping):
            given = flat(self.spec, row)
        else:
            raise TypeError(f"row {number}: a row must be a dict, got {type(row).__name__}")
        check_names(self.spec, number, given)
        values: list[Cells] = []
        present: list[Cells] = []
        for name, field, encode, width in self._steps:
            value = given.get(name)
            if value is None and not (name in given and field.takes_none):
                values.append(_absent(field, number))
                present.append(b"\0")
                continue
            try:
                stored = encode(value)
                if type(stored) is not bytes or (width and len(stored) != width):
                    stored = _checked(field, stored)
            except (TypeError, ValueError) as error:
                message = f"row {number}: field {name!r}: {error}"
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(message) from error
            values.append(stored)
            if field.is_optional:
                present.append(b"\1")
        if self.check:
            self._decode(number, values)
        return values + present

    def _decode(self, number: int, values: Sequence[Cells]) -> None:
        """Refuse a row with a value that cannot be decoded, by a ValueError."""
        for (name, field, *_), one in zip(self._steps, values, strict=True):
            if field.is_optional and not one:
                continue
            try:
                decoder(field)(one)
            except (ValueError, OSError) as error:
                message = f"row {number}: field {name!r} cannot be decoded: {error}"
                raise ValueError(message) from error


def check_names(spec: Spec, number: int, given: Mapping[Any, Any]) -> None:
    """Refuse a row that has other fields, by a ValueError."""
    if not given.keys() <= spec.fields.keys():
        unknown = next(name for name in given if name not in spec.fields)
        raise ValueError(f"row {number}: unknown field {unknown!r}, not in {spec!r}")


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


def elements(value: Any) -> Iterable[Any]:
    """Return the elements of a sequence.

    Raises:
        TypeError: It is not a sequence, but text or a single value.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"expected a list of values, got {type(value).__name__}")
    return value


def _encoder(field: Field) -> Callable[[Any], Cells]:
    """Return the function that encodes a value of a field."""
    if not field.is_sequence:
        return field.codec.encode
    return partial(run_of if field.kind == "cell" else _sequence, field)


def _sequence(field: Field, value: Any) -> list[bytes]:
    return [_bytes(field.codec.encode(one)) for one in elements(value)]


def run_of(field: Field, value: Any) -> bytes:
    """Return numbers as one run of bytes; an array with the dtype of the field is fastest.

    Raises:
        TypeError, ValueError: A number is refused.
    """
    if not isinstance(value, np.ndarray):
        value = list(elements(value))
    elif value.dtype == field.codec.dtype and value.ndim == 1:
        return value.tobytes()
    return bytes(encode_all(field.codec, value)[0])


def _absent(field: Field, number: int) -> Cells:
    """Return what is stored for a missing value, or raise ValueError if there must be one."""
    if not field.is_optional:
        optional = f'; declare it "{field.type}?" if it may be'
        raise ValueError(f"row {number}: field {field.name!r} is missing{optional}")
    return [] if field.kind == "sequence" else bytes(field.width or 0)


def _checked(field: Field, stored: Any) -> Cells:
    """Return what a codec has made of a value, if a file can store it."""
    if field.kind == "sequence" and isinstance(stored, list):
        return stored
    if field.width is not None and len(_bytes(stored)) != field.width:
        raise ValueError(f"its codec must return {field.width} bytes, got {len(stored)}")
    return _bytes(stored)


def _bytes(stored: Any) -> bytes:
    if not isinstance(stored, bytes):
        raise TypeError(f"its codec must return bytes, got {type(stored).__name__}")
    return stored
