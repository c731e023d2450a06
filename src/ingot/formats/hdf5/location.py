"""A path to an HDF5 file, or to something inside of one: `train.h5`, `train.h5/images`."""

from pathlib import Path
from typing import NamedTuple, Self

from ingot.formats.table import SUFFIXES as RECORD_SUFFIXES

SUFFIXES = (".h5", ".hdf5")

_OTHERS = set(RECORD_SUFFIXES) - set(SUFFIXES)
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_STARTS = (0, *(512 << k for k in range(12)))
"""Where HDF5 is looked for: in front of it may be a block of the user's."""


class Location(NamedTuple):
    """A place in an HDF5 file.

    Attributes:
        file: The absolute path of the file.
        inside: The path of a group or a data set in it; empty for the whole file.
    """

    file: str
    inside: str = ""

    @classmethod
    def find(cls, path: str) -> Self | None:
        """Return the place that an absolute path stands for; None if it is no HDF5 file."""
        file = Path(path)
        if file.is_dir():
            return None
        if file.exists():
            return cls(path) if _is_hdf5(file) else None
        for parent in file.parents:
            if parent.is_file():
                inside = file.relative_to(parent).as_posix()
                return cls(str(parent), inside) if _is_hdf5(parent) else None
            if parent.exists():
                return None
        return None

    def __str__(self) -> str:
        return f"{self.file}/{self.inside}" if self.inside else self.file


def _is_hdf5(file: Path) -> bool:
    """Return whether a file has the name of an HDF5 file, or begins like one."""
    if not file.is_file():
        return False
    if file.suffix.lower() in SUFFIXES:
        return True
    if file.suffix.lower() in _OTHERS:
        return False
    with file.open("rb") as opened:
        for start in _STARTS:
            opened.seek(start)
            if opened.read(len(_SIGNATURE)) == _SIGNATURE:
                return True
    return False
