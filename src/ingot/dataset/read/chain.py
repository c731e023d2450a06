"""Concatenated rows of several sources."""

import itertools
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.compound import Compound
from ingot.dataset.read.merging import back, merged
from ingot.dataset.read.plan import Joint, Plan
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Elements, Numbers, Picks, Row, Source, Stored
from ingot.dataset.spec import Spec
from ingot.records.indices import Rows

Share: TypeAlias = tuple[Selection, Numbers, Numbers]


class Chain(Compound):
    """The rows of parts that have the same fields.

    Args:
        parts: The parts.
        name: What errors call all of them; by default as the first one.

    Raises:
        ValueError: The fields differ.
    """

    def __init__(self, parts: Sequence[Selection], name: str | None = None) -> None:
        super().__init__(parts)
        first = parts[0]
        for part in parts:
            if part.spec != first.spec:
                message = (
                    f"{part.path} has the fields {part.spec}, but {first.path} has {first.spec}"
                )
                raise ValueError(message)
        self._name = name
        self._ends = list(accumulate(map(len, parts)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Chain, (self.parts, self._name)

    @property
    def spec(self) -> Spec:
        """The fields."""
        return self.parts[0].spec

    @property
    def path(self) -> str:
        """What was opened, or the first part."""
        return self._name or self.parts[0].path

    def __len__(self) -> int:
        return self._ends[-1]

    def runs(self, numbers: Numbers) -> list[tuple[Source, Numbers]]:
        """Return runs of rows in the same files."""
        which = np.searchsorted(self._ends, numbers, side="right")
        cuts = [0, *(np.flatnonzero(np.diff(which)) + 1).tolist(), len(numbers)]
        found: list[tuple[Source, Numbers]] = []
        for start, stop in itertools.pairwise(cuts):
            k = int(which[start])
            part = self.parts[k]
            own = part.numbers(numbers[start:stop] - (self._ends[k] - len(part)))
            found += part.source.runs(own)
        return found

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row."""
        k = bisect_right(self._ends, number)
        part = self.parts[k]
        own = int(part.rows[number - (self._ends[k] - len(part))])
        return part.source.read_row(own, wanted)

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
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

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file stores them."""
        found = [source.packed(names, own) for source, own in self.runs(numbers)]
        return found[0] if len(found) == 1 else [_joined(one) for one in zip(*found, strict=True)]

    def _shares(self, numbers: Numbers) -> list[Share]:
        """Return for each part its rows: their positions in `numbers`, and in its source."""
        which = np.searchsorted(self._ends, numbers, side="right")
        shares = []
        for k in np.unique(which).tolist() or [0]:
            part = self.parts[k]
            mine = np.flatnonzero(which == k)
            own = numbers[mine] - (self._ends[k] - len(part))
            shares.append((part, mine, part.numbers(own)))
        return shares

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field."""
        return self._of_parts(numbers, lambda source, own: source.column(name, own))

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for a field."""
        return self._of_parts(numbers, lambda source, own: source.present(name, own))

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows."""
        return self._of_parts(numbers, lambda source, own: source.lengths(name, own))

    def _of_parts(
        self, numbers: Rows, of_part: Callable[[Source, Rows], npt.NDArray[Any]]
    ) -> npt.NDArray[Any]:
        if isinstance(numbers, range) and numbers == range(len(self)):
            return np.concatenate([of_part(part.source, part.rows) for part in self.parts])
        shares = self._shares(np.asarray(numbers, np.int64))
        found = np.concatenate([of_part(part.source, own) for part, _, own in shares])
        return found[back([mine for _, mine, _ in shares])]


def _joined(parts: Sequence[Stored]) -> Stored:
    """Concatenate the values of several runs of rows."""
    ends = [np.frombuffer(offsets, np.int64) for _, offsets, _ in parts]
    starts = np.cumsum([0, *(int(one[-1]) for one in ends)])
    offsets = [one[:-1] + start for one, start in zip(ends, starts, strict=False)]
    data = bytearray().join(
        memoryview(one)[: int(end[-1])] for (one, _, _), end in zip(parts, ends, strict=True)
    )
    counts = None if parts[0][2] is None else b"".join(one or b"" for _, _, one in parts)
    return data, np.append(np.concatenate(offsets), starts[-1]).tobytes(), counts


def chained(sources: Sequence[Source], name: str) -> Source:
    """Return the rows of several sources, one after another, as one source."""
    if len(sources) == 1:
        return sources[0]
    return Chain([Selection(one, tuple(one.spec), range(len(one))) for one in sources], name)
