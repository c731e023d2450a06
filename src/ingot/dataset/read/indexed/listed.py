"""Which library an `index.json` is of."""

from pathlib import Path

from ingot.dataset.read.indexed.folder import Listed, read_index
from ingot.dataset.read.indexed.litdata import litdata
from ingot.dataset.read.indexed.mds import mds


def listed_in(folder: Path) -> Listed | None:
    """Return what the `index.json` of a directory says; None if it has none of a known kind.

    Raises:
        FormatError: It is damaged.
    """
    index = read_index(folder)
    if index is None:
        return None
    return mds(folder, index) or litdata(folder, index)
