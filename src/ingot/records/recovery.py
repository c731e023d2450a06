"""Making an unfinished file whole."""

import os
from dataclasses import dataclass

from ingot._core import recover as recover_file
from ingot.records.paths import absolute
from ingot.records.verification import Damage


@dataclass(frozen=True, slots=True)
class Recovery:
    """What `recover` found in a file, and what it did.

    Attributes:
        rows: How many records the file holds now.
        was_whole: Whether nothing had to be done.
        cut_bytes: How many bytes behind the last commit were cut off.
        damaged: Damage that was met on the way. This is not a full verification.
    """

    __module__ = "ingot"

    rows: int
    was_whole: bool
    cut_bytes: int
    damaged: list[Damage]


def recover(path: str | os.PathLike[str], *, sync: bool = True) -> Recovery:
    """Cut an unfinished file back to its last commit and make it whole.

    Nothing that was committed is lost. A file that is whole already is left alone.

    Raises:
        StorageError: A writer has the file open.
        FormatError: It is not an Ingot file, or is damaged beyond this.
    """
    rows, was_whole, cut_bytes, damaged = recover_file(str(absolute(path)), sync)
    return Recovery(rows, was_whole, cut_bytes, [Damage(*damage) for damage in damaged])
