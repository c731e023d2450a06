"""Granular's bags, of any version."""

from pathlib import Path
from typing import Self

from ingot.formats.bag import BagFile, BagReader


class Column(BagReader):
    """A bag, open for reading."""

    @classmethod
    def paired(cls, path: Path, limits: Path) -> Self:
        """Open a bag whose limits are in their own file, as of Granular 0.22."""
        return cls([BagFile(str(path), str(limits), "none")])

    @classmethod
    def single(cls, path: Path) -> Self:
        """Open a bag whose limits follow its records, as up to Granular 0.21.

        Up to Granular 0.19, the limits begin with a zero. No other bag has that: it would be the
        limit of an empty record, which Granular does not write there.
        """
        bag = cls([BagFile(str(path), None, "none")])
        if len(bag) == 0 or bag.lengths([0])[0] > 0:
            return bag
        bag.close()
        return cls([BagFile(str(path), None, "none", leading_zero=True)])

    @property
    def nbytes(self) -> int:
        """The size of the records and their limits."""
        stats = self.stats()
        is_pair = self._files[0].limits_path is not None
        return stats.file_bytes + ((stats.index_bytes or 0) if is_pair else 0)
