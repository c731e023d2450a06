"""Rows whose fields come from several sources."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.compound import Compound
from ingot.dataset.read.plan import Joint, Plan
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Elements, Numbers, Picks, Progress, Row, Source, Stored
from ingot.dataset.spec import Spec
from ingot.errors import counted
from ingot.records import Verification
from ingot.records.indices import Rows


class Zipped(Compound):
    """The fields of parts with the same number of rows, side by side.

    Raises:
        ValueError: The numbers of rows differ, or two parts share a field.
    """

    spec: Spec

    def __init__(self, parts: Sequence[Selection]) -> None:
        super().__init__(parts)
        first = parts[0]
        self._owners: dict[str, Selection] = {}
        for part in parts:
            if len(part) != len(first):
                rows = counted(len(part), "row")
                message = f"{part.path} has {rows}, but {first.path} has {len(first):,}"
                raise ValueError(message)
            for name in part.spec:
                if name in self._owners:
                    message = f"{part.path}: {self._owners[name].path} also has a field {name!r}"
                    raise ValueError(message)
                self._owners[name] = part
        self.spec = Spec({name: part.spec.fields[name] for name, part in self._owners.items()})

    def __len__(self) -> int:
        return len(self.parts[0])

    def _shares(self, names: Iterable[str]) -> list[tuple[Selection, list[str]]]:
        """Return for each part which of some fields it has; `NAME?` is in the part of `NAME`."""
        asked = [(name, self._owners[name.removesuffix("?")]) for name in names]
        shares = ((part, [name for name, owner in asked if owner is part]) for part in self.parts)
        return [(part, own) for part, own in shares if own]

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row."""
        found: Row = {}
        for part, own in self._shares(wanted):
            asked = {name: wanted[name] for name in own}
            found |= part.source.read_row(int(part.rows[number]), asked)
        return {name: found[name] for name in wanted}

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows, of all parts together."""
        plans = [
            part.source.plan(part.numbers(numbers), {name: wanted[name] for name in own})
            for part, own in self._shares(wanted)
        ]
        return Joint(plans, lambda found: _side_by_side(found, wanted))

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file stores them."""
        found: dict[str, Stored] = {}
        for part, own in self._shares(names):
            found |= zip(own, part.source.packed(own, part.numbers(numbers)), strict=True)
        return [found[name] for name in names]

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field."""
        source, own = self._place(name, numbers)
        return source.column(name, own)

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for a field."""
        source, own = self._place(name, numbers)
        return source.present(name, own)

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows."""
        source, own = self._place(name, numbers)
        return source.lengths(name, own)

    def _place(self, name: str, numbers: Rows) -> tuple[Source, Rows]:
        """Return the source of a field, and the numbers of rows there."""
        part = self._owners[name]
        is_all = isinstance(numbers, range) and numbers == range(len(self))
        return part.source, part.rows if is_all else part.numbers(numbers)

    def verify(self, progress: Progress) -> Verification:
        """Verify all files."""
        return replace(super().verify(progress), rows=len(self))


def _side_by_side(found: Sequence[Row], names: Iterable[str]) -> Row:
    merged = {name: values for one in found for name, values in one.items()}
    return {name: merged[name] for name in names}
