"""Encoded rows that wait to be appended together."""

from collections.abc import Sequence
from time import monotonic
from typing import Protocol

import numpy as np

from ingot.codecs.codec import joined
from ingot.dataset.read.decoding import Stored
from ingot.dataset.spec import Spec
from ingot.dataset.write.copying import PackedField, PackedRows

_ROWS = 1024
_BYTES = 1 << 20
_LARGE = 8 << 10
"""The size at which a call for one row costs less than a copy of its bytes."""
_PAUSE_S = 0.1


class Target(Protocol):
    """A file, or files, to append encoded rows to."""

    def append(self, stored: Sequence[Stored], nbytes: int, /) -> None:
        """Append a row of `nbytes` bytes."""

    def extend(self, rows: PackedRows, /) -> None:
        """Append many rows."""


class Gathering:
    """Encoded rows, gathered until one call appends them all.

    Args:
        spec: The fields of the rows.

    Attributes:
        rows: The rows, in order.
        nbytes: Their size in bytes.
    """

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self.clear()

    def clear(self) -> None:
        """Forget the rows."""
        self.rows: list[list[Stored]] = []
        self.nbytes = 0
        self._began = monotonic()

    def add(self, stored: list[Stored], nbytes: int) -> bool:
        """Add a row of `nbytes` bytes; return whether the rows should wait no longer.

        Large rows do not wait, nor do rows that come slowly.
        """
        self.rows.append(stored)
        self.nbytes += nbytes
        return (
            nbytes >= _LARGE
            or len(self.rows) >= _ROWS
            or self.nbytes >= _BYTES
            or monotonic() - self._began >= _PAUSE_S
        )

    def store(self, target: Target) -> None:
        """Append the rows to a target, and forget them."""
        rows, nbytes = self.rows, self.nbytes
        self.clear()
        if len(rows) == 1:
            target.append(rows[0], nbytes)
        elif rows:
            target.extend(packed_rows(self._spec, rows))


def packed_rows(spec: Spec, rows: Sequence[Sequence[Stored]]) -> PackedRows:
    """Return encoded rows in one piece."""
    kinds = [kind for _, kind, *_ in spec.stored()]
    columns = zip(*rows, strict=True) if rows else ([] for _ in kinds)
    fields = [_field(kind, column) for kind, column in zip(kinds, columns, strict=True)]
    return PackedRows(fields, len(rows))


def _field(kind: str, column: Sequence[Stored]) -> PackedField:
    if kind != "sequence":
        return PackedField(*joined([one for one in column if isinstance(one, bytes)]))
    runs = [one for one in column if isinstance(one, list)]
    counts = np.array([len(run) for run in runs], np.uint64).tobytes()
    return PackedField(*joined([cell for run in runs for cell in run]), counts)
