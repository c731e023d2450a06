"""Sources that are made of parts of others: concatenated, or side by side."""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.plan import Joint, Plan
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import (
    Elements,
    Numbers,
    Picks,
    Progress,
    Row,
    Source,
    Stored,
    identity_of,
    subset_of,
)
from ingot.dataset.read.values import back, merged
from ingot.dataset.spec import Spec
from ingot.errors import counted
from ingot.records import Verification
from ingot.records.indices import Rows

_Ask: TypeAlias = Callable[[Source, Rows], npt.NDArray[Any]]
_Share: TypeAlias = tuple[Selection, Numbers, Numbers]


class Compound(Source):
    """A source that is made of some rows and fields of others.

    Attributes:
        parts: These.
    """

    def __init__(self, parts: Sequence[Selection]) -> None:
        self.parts = list(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parts,)

    def raw(self, names: Collection[str] | None = None) -> Self:
        """Return the same rows with fields that are not numbers as bytes."""
        opener, given = self.__reduce__()
        parts = [Selection(one.source.raw(names), one.names, one.rows) for one in self.parts]
        found: Self = opener(parts, *given[1:])
        return found

    @property
    def paths(self) -> Sequence[str]:
        """All files."""
        return [path for part in self.parts for path in part.source.paths]

    @property
    def path(self) -> str:
        """What was opened as the first part."""
        return self.parts[0].path

    @property
    def format(self) -> str:
        """The format of the first part."""
        return self.parts[0].source.format

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the first part."""
        return self.parts[0].source.metadata

    @property
    def nbytes(self) -> int:
        """The total size."""
        return sum(part.source.nbytes for part in self.parts)

    @property
    def others(self) -> Sequence[str]:
        """Other contents of the files."""
        return sorted({name for part in self.parts for name in part.source.others})

    @property
    def is_recoded(self) -> bool:
        """Whether values of a part are decoded and encoded again."""
        return any(part.source.is_recoded for part in self.parts)

    @property
    def identity(self) -> str:
        """What tells the content of all files from others, and which rows of them there are."""
        return identity_of(f"{part.source.identity} {subset_of(part.rows)}" for part in self.parts)

    @abstractmethod
    def _ask(self, name: str, numbers: Rows, of_part: _Ask) -> npt.NDArray[Any]:
        """Return what the parts know of a field in rows."""

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field."""
        return self._ask(name, numbers, lambda source, own: source.column(name, own))

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for a field."""
        return self._ask(name, numbers, lambda source, own: source.present(name, own))

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows."""
        return self._ask(name, numbers, lambda source, own: source.lengths(name, own))

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together."""
        shares = ((part, [name for name in names if name in part.spec]) for part in self.parts)
        each = [part.source.together(own) for part, own in shares if own]
        return min((first for first, _ in each), default=1), max((n for _, n in each), default=1)

    def verify(self, progress: Progress) -> Verification:
        """Verify all files."""
        rows, damaged, unchecked = 0, [], set()
        for part in self.parts:
            found = part.source.verify(progress)
            rows += found.rows
            damaged += [replace(one, reason=f"{part.path}: {one.reason}") for one in found.damaged]
            unchecked |= set(part.spec) & set(found.unchecked)
        return Verification(rows, damaged, tuple(name for name in self.spec if name in unchecked))

    @property
    def closed(self) -> bool:
        """Whether files of a part are closed."""
        return any(part.source.closed for part in self.parts)

    def close(self) -> None:
        """Close all files."""
        for part in self.parts:
            part.source.close()


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
                raise ValueError(
                    f"{part.path} has the fields {part.spec}, but {first.path} has {first.spec}"
                )
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
        for start, stop in pairwise(cuts):
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

    def _shares(self, numbers: Numbers) -> list[_Share]:
        """Return for each part its rows: their positions in `numbers`, and in its source."""
        which = np.searchsorted(self._ends, numbers, side="right")
        shares = []
        for k in np.unique(which).tolist() or [0]:
            part = self.parts[k]
            mine = np.flatnonzero(which == k)
            own = numbers[mine] - (self._ends[k] - len(part))
            shares.append((part, mine, part.numbers(own)))
        return shares

    def _consecutive(self, numbers: range) -> Iterator[tuple[Selection, Rows]]:
        """Yield the parts of consecutive rows, and their numbers in the sources of these."""
        for part, end in zip(self.parts, self._ends, strict=True):
            first = end - len(part)
            own = part.rows[max(0, numbers.start - first) : max(0, numbers.stop - first)]
            if len(own):
                yield part, own

    def _ask(self, name: str, numbers: Rows, of_part: _Ask) -> npt.NDArray[Any]:
        del name  # Every part has the field.
        if isinstance(numbers, range) and numbers.step == 1 and len(numbers):
            runs = self._consecutive(numbers)
            return np.concatenate([of_part(part.source, own) for part, own in runs])
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
                raise ValueError(f"{part.path} has {rows}, but {first.path} has {len(first):,}")
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
        found = [
            part.source.read_row(int(part.rows[number]), {name: wanted[name] for name in own})
            for part, own in self._shares(wanted)
        ]
        return _ordered(found, wanted)

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows, of all parts together."""
        plans = [
            part.source.plan(part.numbers(numbers), {name: wanted[name] for name in own})
            for part, own in self._shares(wanted)
        ]
        return Joint(plans, lambda found: _ordered(found, wanted))

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file stores them."""
        found: dict[str, Stored] = {}
        for part, own in self._shares(names):
            found |= zip(own, part.source.packed(own, part.numbers(numbers)), strict=True)
        return [found[name] for name in names]

    def _ask(self, name: str, numbers: Rows, of_part: _Ask) -> npt.NDArray[Any]:
        part = self._owners[name]
        if isinstance(numbers, range) and numbers.step == 1:
            return of_part(part.source, part.rows[numbers.start : numbers.stop])
        return of_part(part.source, part.numbers(numbers))

    def verify(self, progress: Progress) -> Verification:
        """Verify all files."""
        return replace(super().verify(progress), rows=len(self))


def _ordered(found: Sequence[Row], names: Iterable[str]) -> Row:
    """Return the fields of several rows or batches as one, in an order of names."""
    merged = {name: values for one in found for name, values in one.items()}
    return {name: merged[name] for name in names}
