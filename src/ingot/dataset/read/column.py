"""The values of one field, or of a member of its JSON, in all rows, as one array."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ingot.dataset.nested import DOT
from ingot.dataset.read.iteration import blocks
from ingot.dataset.read.selection import Selection, no_field
from ingot.dataset.read.source import Row
from ingot.dataset.spec import Field

TREES = ("json", "msgpack", "tree")
"""The types whose values may be dicts."""

_SHOWN = 10
_DTYPES: dict[frozenset[type], Any] = {
    frozenset({bool}): np.bool_,
    frozenset({int}): np.int64,
    frozenset({float}): np.float64,
    frozenset({int, float}): np.float64,
}


def column_of(selection: Selection, field: Field) -> npt.NDArray[Any]:
    """Return the values of a field of the selection in all its rows.

    Raises:
        TypeError: They cannot be stored in one array.
    """
    if field.codec.name == "utf8" and not field.is_sequence:
        return _texts(selection, field)
    is_array = field.codec.dtype is not None and field.codec.shape != ()
    if is_array and not field.is_sequence and not field.is_optional:
        return _arrays(selection, field)
    if field.codec.name in TREES and not field.is_sequence:
        raise TypeError(
            f"{selection.path}: field {field.name!r} is {field.type}, expected numbers, text or "
            f"arrays; column('{field.name}.KEY') returns a member of its dicts"
        )
    return selection.source.column(field.name, selection.rows)


def _texts(selection: Selection, field: Field) -> npt.NDArray[Any]:
    dtype = np.dtypes.StringDType(na_object=None) if field.is_optional else np.dtypes.StringDType()
    found = np.empty(len(selection), dtype)
    nbytes = 0
    for places, row in values_of(selection, [field.name]):
        values = row[field.name]
        nbytes += sum(len(one) for one in values if one is not None)
        selection.source.check_size(nbytes)
        found[places.start : places.stop] = np.array(values, dtype)
    return found


def _arrays(selection: Selection, field: Field) -> npt.NDArray[Any]:
    dtype = np.dtype(field.codec.dtype)
    selection.source.check_size(len(selection) * math.prod(field.codec.shape) * dtype.itemsize)
    found = np.empty((len(selection), *field.codec.shape), dtype)
    for places, values in values_of(selection, [field.name]):
        found[places.start : places.stop] = values[field.name]
    return found


def values_of(selection: Selection, names: Sequence[str]) -> Iterator[tuple[range, Row]]:
    """Yield the values of fields in consecutive rows, a block at a time."""
    start = 0
    for numbers, found in blocks(selection, names):
        places = range(start, start + len(numbers))
        start = places.stop
        if found is not None:
            yield places, found
            continue
        wanted = dict.fromkeys(names)
        for place in places:  # Row by row, so that the error names the damaged row.
            one = range(place, place + 1)
            yield one, selection.read(selection.numbers(one), wanted)


class Member(NamedTuple):
    """A member of the dicts in a field, such as `meta.lang`.

    Attributes:
        field: The field.
        keys: The keys that lead to the member.
    """

    field: Field
    keys: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its full name."""
        return DOT.join([self.field.name, *self.keys])

    @classmethod
    def find(cls, selection: Selection, name: str) -> "Member":
        """Return the member with a name.

        Raises:
            KeyError: The name does not begin with that of a field of JSON.
        """
        parts = name.split(DOT) if isinstance(name, str) else []
        for end in range(len(parts) - 1, 0, -1):
            field = selection.spec.fields.get(DOT.join(parts[:end]))
            if field is not None and field.codec.name in TREES and not field.is_sequence:
                return cls(field, tuple(parts[end:]))
        raise no_field(selection.spec, name, selection.path)

    def present(self, selection: Selection) -> npt.NDArray[np.bool_]:
        """Return which rows have the member; None counts as missing."""
        return np.array([one is not None for one in self._values(selection)], np.bool_)

    def column(self, selection: Selection) -> npt.NDArray[Any]:
        """Return the member in all rows as one array; 0 or None where it is missing.

        Raises:
            KeyError: No row has it.
            TypeError: The values are neither all numbers, nor all booleans, nor all text.
        """
        values = self._values(selection)
        kinds = frozenset(type(one) for one in values if one is not None)
        if kinds == {str}:
            has_all = None not in values
            dtype = np.dtypes.StringDType() if has_all else np.dtypes.StringDType(na_object=None)
            return np.array(values, dtype)
        if not kinds and values:
            raise KeyError(f"{selection.path}: {self.absent(selection)}")
        if kinds in _DTYPES or not kinds:
            dtype = _DTYPES.get(kinds, np.int64)
            with suppress(OverflowError):
                return np.array([0 if one is None else one for one in values], dtype)
        raise TypeError(f"{selection.path}: {self.unlike(values)}")

    def reached(self, value: Any) -> Any:
        """Return the member in a value of the field; None if it has none."""
        for key in self.keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def absent(self, selection: Selection) -> str:
        """Return the message for a member that no row has: which keys the first row has."""
        (value,) = selection.read(selection.numbers(range(1)), {self.field.name: None}).values()
        keys = [str(key) for key in value[0]][:_SHOWN] if isinstance(value[0], Mapping) else []
        known = f"; the first row has {', '.join(map(repr, keys))}" if keys else ""
        return f"no row has {self.name!r}{known}"

    def unlike(self, values: Sequence[Any]) -> str:
        """Return the message for values that cannot be stored in one array."""
        kinds = {type(one).__name__ for one in values if one is not None}
        return (
            f"the values of {self.name!r} are of type {', '.join(sorted(kinds))}, expected only "
            "text, booleans, or numbers of 64 bits; choose rows with take([...])"
        )

    def _values(self, selection: Selection) -> list[Any]:
        name = self.field.name
        values = values_of(selection, [name])
        return [self.reached(value) for _, row in values for value in row[name]]
