"""Some rows and fields of a source, and masks, which select elements of sequences too."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.plan import read
from ingot.dataset.read.source import ALL, Elements, Picks, Row, Source
from ingot.dataset.spec import Field, Spec
from ingot.records.indices import Indices, Rows, number_at, numbers_at, resolve

_END = 1 << 62
_NAMES_MAX = 10

Range: TypeAlias = range | slice
Mask: TypeAlias = Mapping[str, bool | Range | Sequence[Range]] | Sequence[str]


@dataclass(frozen=True, slots=True)
class Selection:
    """Some rows and some fields of a source.

    Attributes:
        source: The source.
        names: The fields, in order.
        rows: The row numbers in the source, in order.
        spec: The fields and their types.
        path: The name of the source in errors.
    """

    source: Source
    names: tuple[str, ...]
    rows: Rows
    spec: Spec = field(init=False)
    path: str = field(init=False)

    def __post_init__(self) -> None:
        fields = self.source.spec.fields
        object.__setattr__(self, "spec", Spec({name: fields[name] for name in self.names}))
        object.__setattr__(self, "path", self.source.path)

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Row:
        """Read the wanted fields of rows, by their numbers in the source, in one go."""
        return read(self.source.plan(numbers, wanted))

    def numbers(self, places: Rows) -> npt.NDArray[np.int64]:
        """Return the row numbers in the source for positions in the selection."""
        return numbers_at(self.rows, places)

    def number(self, index: SupportsIndex) -> int:
        """Return the row number for an index; a negative index counts from the end.

        Raises:
            IndexError: It is out of range.
        """
        return number_at(self.rows, index, self.path)

    def resolve(self, indices: Indices) -> npt.NDArray[np.int64]:
        """Return the row numbers for several indices.

        Raises:
            IndexError: One is out of range.
            TypeError: They are not integers.
        """
        given: object = indices
        if isinstance(given, str):
            raise TypeError(
                "indices must be integers, got the name of a field; "
                f"select({given!r}) selects that field, column({given!r}) returns its values"
            )
        return resolve(self.rows, indices, self.path)


def wanted_by(mask: Mask, spec: Spec, path: str) -> dict[str, Elements]:
    """Return what a mask selects of each field.

    Raises:
        KeyError: There is no such field.
        TypeError: It is not a mask, or selects elements of a field that is not a sequence.
        ValueError: A range does not go up.
    """
    return {
        name: ALL if part is True else elements_of(spec.fields[name], part)
        for name, part in _parts(mask, spec, path)
    }


def picked_by(mask: Mask, spec: Spec, path: str, count: int) -> dict[str, Picks]:
    """Return what a mask selects of each field of `count` rows.

    Raises:
        As `wanted_by`.
    """
    return {
        name: None if part is True else _each(spec.fields[name], part, count)
        for name, part in _parts(mask, spec, path)
    }


def _parts(mask: Mask, spec: Spec, path: str) -> Iterator[tuple[str, object]]:
    """Yield the fields that a mask names, with its value for each, unless that is False."""
    if isinstance(mask, str):
        raise TypeError(f"a mask must be a list of fields or a dict, got a str: pass [{mask!r}]")
    parts = mask if isinstance(mask, Mapping) else dict.fromkeys(mask, True)
    for group, part in parts.items():
        for name in fields_under(spec, group, path):
            if part is not False:
                yield name, part


def fields_under(spec: Spec, name: str, path: str) -> list[str]:
    """Return the field with a name, or the fields inside it.

    Raises:
        KeyError: There is no such field.
    """
    found = spec.under(name) if isinstance(name, str) else []
    if not found:
        raise no_field(spec, name, path)
    return found


def field_of(spec: Spec, name: str, path: str) -> Field:
    """Return the field with a name.

    Raises:
        KeyError: There is no such field.
    """
    if not isinstance(name, str) or name not in spec.fields:
        raise no_field(spec, name, path)
    return spec.fields[name]


def no_field(spec: Spec, name: object, path: str) -> KeyError:
    """Return the error for a field that does not exist."""
    near = get_close_matches(str(name), spec, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    names = ", ".join(map(repr, islice(spec, _NAMES_MAX)))
    more = f" and {len(spec) - _NAMES_MAX} more" if len(spec) > _NAMES_MAX else ""
    return KeyError(f"{path}: there is no field {name!r} among {names}{more}{meant}")


def _each(field: Field, part: object, count: int) -> Picks:
    if isinstance(part, list | tuple):
        if len(part) != count:
            message = f"field {field.name!r}: expected {count} ranges, one per row, got {len(part)}"
            raise ValueError(message)
        return [elements_of(field, one) for one in part]
    return [elements_of(field, part)] * count


def elements_of(field: Field, part: object) -> Elements:
    """Return the elements that a range of a mask selects.

    Raises:
        TypeError: It is not a range, or the field is not a sequence.
        ValueError: The range does not go up.
    """
    if not isinstance(part, range | slice):
        message = f"field {field.name!r}: a mask must be True, False or a range, got {part!r}"
        raise TypeError(message)
    if not field.is_sequence:
        raise TypeError(f"field {field.name!r} is {field.type}, expected a sequence")
    if (1 if part.step is None else part.step) < 1:
        raise ValueError(f"field {field.name!r}: a range of elements must go up, got {part!r}")
    if (part.start or 0) < 0 or (part.stop or 0) < 0:
        message = f"field {field.name!r}: a range of elements must not be negative, got {part!r}"
        raise ValueError(message)
    return _within(part.start), _within(part.stop), _within(part.step)


def _within(number: int | None) -> int | None:
    return None if number is None else min(number, _END)
