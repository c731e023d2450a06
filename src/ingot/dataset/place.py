"""The places of several writers of one data set, and which of them have finished."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

_NAME = re.compile(r"part-([A-Za-z0-9_.-]+)-(\d{5})-of-(\d{5})\.json")
_LISTED = 20


@dataclass(frozen=True, slots=True)
class Place:
    """The number of a writer in a group of writers.

    Attributes:
        run: The name that the writers of the group share; digits, if they were given none.
        number: The number of this writer, from 0.
        total: The number of writers.
    """

    run: str
    number: int
    total: int

    @property
    def name(self) -> str:
        """The name of the file that the writer leaves."""
        return f"part-{self.run}-{self.number:05}-of-{self.total:05}.json"

    @property
    def title(self) -> str:
        """The group, for messages."""
        named = "" if self.run.isdigit() else f" of the run {self.run!r}"
        return f"the {self.total} writers{named}"


def places(folder: Path) -> list[Place]:
    """Return the place of each part in a directory, in order."""
    named = (_NAME.fullmatch(entry.name) for entry in folder.iterdir())
    found = [Place(name[1], int(name[2]), int(name[3])) for name in named if name]
    return sorted(
        (one for one in found if one.number < one.total),
        key=lambda one: (one.run, one.total, one.number),
    )


def group(folder: Path, place: Place) -> list[Place]:
    """Return the places of the writers of a group that have finished."""
    return [one for one in places(folder) if (one.run, one.total) == (place.run, place.total)]


def unfinished(folder: Path) -> str | None:
    """Return what to do about writers that have not finished; None if all have."""
    told, count = [], 0
    for _, some in groupby(places(folder), key=lambda one: (one.run, one.total)):
        finished = list(some)
        missing = set(range(finished[0].total)) - {one.number for one in finished}
        count += len(missing)
        title = finished[0].title
        if len(missing) == 1:
            told.append(f"writer {missing.pop()} of {title} has not finished")
        elif missing:
            told.append(f"of {title} these have not finished: {_ranges(missing)}")
    again = "it again, and it" if count == 1 else "those again, and the last one"
    return f"{'; '.join(told)}; run {again} commits all rows" if told else None


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers as text, such as "0, 3-5"."""
    told: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if told and told[-1][1] == number - 1:
            told[-1] = (told[-1][0], number)
        else:
            told.append((number, number))
    listed = [str(first) if first == last else f"{first}-{last}" for first, last in told]
    return ", ".join(listed[:_LISTED]) + ", ..." * (len(listed) > _LISTED)
