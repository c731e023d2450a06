"""Sources that are made of parts of others."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Self

from ingot.dataset.read.identity import identity_of, subset_of
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Progress, Source
from ingot.records import Verification


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
