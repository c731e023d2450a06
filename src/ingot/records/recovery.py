"""Finishing an unfinished file."""

import os
from dataclasses import dataclass

from ingot._core import recover as recover_file
from ingot.records.expand import absolute
from ingot.records.verification import Damage


@dataclass(frozen=True, slots=True)
class Recovery:
    """What `recover` found in a file, and what it did.

    Attributes:
        rows: The number of records that the file holds now.
        was_whole: Whether the file was already finished.
        cut_bytes: The number of bytes after the last commit that were cut off.
        damaged: Damage that `recover` came across. This is not a full verification.
    """

    __module__ = "ingot"

    rows: int
    was_whole: bool
    cut_bytes: int
    damaged: list[Damage]


def recover(path: str | os.PathLike[str], *, sync: bool = True) -> Recovery:
    """Cut an unfinished file back to its last commit and finish it.

    Nothing that was committed is lost. A finished file is not changed.

    Raises:
        StorageError: A writer has the file open.
        FormatError: It is not an Ingot file, or is too damaged to recover.
    """
    rows, was_whole, cut_bytes, damaged = recover_file(str(absolute(path)), sync)
    return Recovery(rows, was_whole, cut_bytes, [Damage(*damage) for damage in damaged])
