"""Concatenated rows of several sources."""

import itertools
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.identity import identity_of, subset_of
from ingot.dataset.read.merging import back, merged
from ingot.dataset.read.plan import Joint, Plan
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Elements, Picks, Row, Source
from ingot.dataset.spec import Spec
from ingot.records import Verification
from ingot.records.indices import Rows

Share: TypeAlias = tuple[Selection, npt.NDArray[np.int64], npt.NDArray[np.int64]]


class Chain:
    """The rows of parts that have the same fields.

    Args:
        parts: The parts.
        name: What errors call all of them; by default as the first one.

    Raises:
        ValueError: The fields differ.
    """

    def __init__(self, parts: Sequence[Selection], name: str | None = None) -> None:
        first = parts[0]
        for part in parts:
            if part.spec != first.spec:
                message = (
                    f"{part.path} has the fields {part.spec}, but {first.path} has {first.spec}"
                )
                raise ValueError(message)
        self._parts = list(parts)
        self._name = name
        self._ends = list(accumulate(map(len, parts)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Chain, (self._parts, self._name)

    @property
    def spec(self) -> Spec:
        """The fields."""
        return self._parts[0].spec

    @property
    def paths(self) -> Sequence[str]:
        """All files."""
        return [path for part in self._parts for path in part.source.paths]

    @property
    def path(self) -> str:
        """What was opened, or the first part."""
        return self._name or self._parts[0].path

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
        return self._ends[-1]

    def _place(self, number: int) -> tuple[Selection, int]:
        k = bisect_right(self._ends, number)
        part = self._parts[k]
        return part, int(part.rows[number - (self._ends[k] - len(part))])

    @property
    def parts(self) -> Sequence[Selection]:
        """The parts."""
        return self._parts

    def runs(self, numbers: npt.NDArray[np.int64]) -> list[tuple[Selection, npt.NDArray[np.int64]]]:
        """Return runs of rows in the same part, and their numbers in its source."""
        which = np.searchsorted(self._ends, numbers, side="right")
        cuts = [0, *(np.flatnonzero(np.diff(which)) + 1).tolist(), len(numbers)]
        found = []
        for start, stop in itertools.pairwise(cuts):
            k = int(which[start])
            part = self._parts[k]
            found.append((part, part.numbers(numbers[start:stop] - (self._ends[k] - len(part)))))
        return found

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row."""
        part, own = self._place(number)
        return part.source.read_row(own, wanted)

    def plan(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows, of all parts together."""
        shares = self._shares(numbers)
        plans = []
        for part, mine, own in shares:
            asked = {
                name: None if picks is None else [picks[one] for one in mine.tolist()]
                for name, picks in wanted.items()
            }
            plans.append(part.source.plan(own, asked))
        if len(plans) == 1:
            return plans[0]
        fields = {name: self.spec.fields[name] for name in wanted}
        order = back([mine for _, mine, _ in shares])
        return Joint(plans, lambda found: merged(found, order, fields))

    def _shares(self, numbers: npt.NDArray[np.int64]) -> list[Share]:
        """Return for each part its rows: their positions in `numbers`, and in its source."""
        which = np.searchsorted(self._ends, numbers, side="right")
        shares = []
        for k in np.unique(which).tolist() or [0]:
            part = self._parts[k]
            mine = np.flatnonzero(which == k)
            own = numbers[mine] - (self._ends[k] - len(part))
            shares.append((part, mine, part.numbers(own)))
        return shares

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return which fields a row has."""
        part, own = self._place(number)
        return part.source.available(own, names)

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field."""
        return self._gather(numbers, lambda source, own: source.column(name, own))

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for an optional field."""
        return self._gather(numbers, lambda source, own: source.present(name, own))

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows."""
        return self._gather(numbers, lambda source, own: source.lengths(name, own))

    def _gather(
        self, numbers: Rows, of_part: Callable[[Source, Rows], npt.NDArray[Any]]
    ) -> npt.NDArray[Any]:
        if isinstance(numbers, range) and numbers == range(len(self)):
            return np.concatenate([of_part(part.source, part.rows) for part in self._parts])
        shares = self._shares(np.asarray(numbers, np.int64))
        found = np.concatenate([of_part(part.source, own) for part, _, own in shares])
        return found[back([mine for _, mine, _ in shares])]

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together."""
        first, most = zip(*(part.source.together(names) for part in self._parts), strict=True)
        return min(first), max(most)

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
        """Verify every checksum of all files."""
        rows = 0
        damaged = []
        unchecked: set[str] = set()
        for part in self._parts:
            found = part.source.verify(progress)
            unchecked.update(found.unchecked)
            damaged += [replace(one, reason=f"{part.path}: {one.reason}") for one in found.damaged]
            rows += found.rows
        return Verification(rows, damaged, tuple(sorted(unchecked)))

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
