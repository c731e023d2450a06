"""Rows whose fields come from several sources."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.identity import identity_of, subset_of
from ingot.dataset.read.plan import Joint, Plan
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Elements, Picks, Row
from ingot.dataset.spec import Spec
from ingot.errors import counted
from ingot.records import Verification
from ingot.records.indices import Rows


class Zipped:
    """The fields of parts with the same number of rows, side by side.

    Raises:
        ValueError: The numbers of rows differ, or two parts share a field.
    """

    def __init__(self, parts: Sequence[Selection]) -> None:
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
        self._parts = list(parts)
        self.spec = Spec({name: part.spec.fields[name] for name, part in self._owners.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return Zipped, (self._parts,)

    @property
    def paths(self) -> Sequence[str]:
        """All files."""
        return [path for part in self._parts for path in part.source.paths]

    @property
    def path(self) -> str:
        """The first file."""
        return self._parts[0].path

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the first part."""
        return self._parts[0].source.metadata

    @property
    def nbytes(self) -> int:
        """The total size."""
        return sum(part.source.nbytes for part in self._parts)

    @property
    def others(self) -> Sequence[str]:
        """Other contents of the files."""
        return sorted({name for part in self._parts for name in part.source.others})

    def __len__(self) -> int:
        return len(self._parts[0])

    def _shares(self, names: Sequence[str]) -> list[tuple[Selection, list[str]]]:
        shares = ((part, [name for name in names if name in part.spec]) for part in self._parts)
        return [(part, own) for part, own in shares if own]

    @property
    def parts(self) -> Sequence[Selection]:
        """The parts."""
        return self._parts

    def owner(self, name: str) -> Selection:
        """Return the part that a field comes from."""
        return self._owners[name]

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row."""
        found: Row = {}
        for part, own in self._shares(list(wanted)):
            asked = {name: wanted[name] for name in own}
            found |= part.source.read_row(int(part.rows[number]), asked)
        return {name: found[name] for name in wanted}

    def plan(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows, of all parts together."""
        plans = [
            part.source.plan(part.numbers(numbers), {name: wanted[name] for name in own})
            for part, own in self._shares(list(wanted))
        ]
        return Joint(plans, lambda found: _side_by_side(found, wanted))

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return which fields a row has."""
        found: dict[str, bool | range] = {}
        for part, own in self._shares(names):
            found |= part.source.available(int(part.rows[number]), own)
        return {name: found[name] for name in names}

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field."""
        part = self._owners[name]
        return part.source.column(name, self._own(part, numbers))

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for an optional field."""
        part = self._owners[name]
        return part.source.present(name, self._own(part, numbers))

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows."""
        part = self._owners[name]
        return part.source.lengths(name, self._own(part, numbers))

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together."""
        each = [part.source.together(own) for part, own in self._shares(names)]
        return min((first for first, _ in each), default=1), max((n for _, n in each), default=1)

    def _own(self, part: Selection, numbers: Rows) -> Rows:
        is_all = isinstance(numbers, range) and numbers == range(len(self))
        return part.rows if is_all else part.numbers(numbers)

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
        """Verify every checksum of all files."""
        damaged = []
        unchecked: list[str] = []
        for part in self._parts:
            found = part.source.verify(progress)
            damaged += [replace(one, reason=f"{part.path}: {one.reason}") for one in found.damaged]
            unchecked += [name for name in found.unchecked if name in part.spec]
        return Verification(len(self), damaged, tuple(unchecked))

    @property
    def identity(self) -> str:
        """What tells the content of all files from others, and which rows of them there are."""
        return identity_of(f"{part.source.identity} {subset_of(part.rows)}" for part in self._parts)

    @property
    def closed(self) -> bool:
        """Whether files of a part are closed."""
        return any(part.source.closed for part in self._parts)

    def close(self) -> None:
        """Close all files."""
        for part in self._parts:
            part.source.close()


def _side_by_side(found: Sequence[Row], names: Iterable[str]) -> Row:
    merged = {name: values for one in found for name, values in one.items()}
    return {name: merged[name] for name in names}
