"""What tells the content of rows from that of others, wherever their files are."""

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ingot.records.indices import Rows


def identity_of(parts: Iterable[str]) -> str:
    """Return a hash of what tells the parts of a source from others, in their order."""
    return hashlib.sha256(" ".join(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def subset_of(rows: Rows) -> str:
    """Return which rows these are: a range, or a hash of their numbers."""
    if isinstance(rows, range):
        return f"{rows.start}:{rows.stop}:{rows.step}"
    return digest_of(rows)


def digest_of(array: npt.NDArray[np.int64]) -> str:
    """Return a short hash of numbers."""
    return hashlib.sha256(array.astype("<i8").tobytes()).hexdigest()[:16]
