"""Which rows some positions of an order are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Int64s: TypeAlias = npt.NDArray[np.int64]
Level: TypeAlias = tuple[bytearray, int, bytearray, bytearray]
Told: TypeAlias = tuple[Sequence[bytearray], Sequence[Level]]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Batches or packs, and the maps that each of them goes through as a whole.

    Attributes:
        offsets: Where each group begins among the groups inside it, or among the rows if there
            are none, and where the last one ends.
        map: The numbers of the maps of each group, the first to be applied first; -1 where a
            group has fewer.
        key: The seed of the random numbers of each of these maps.
    """

    __module__ = "ingot.order"

    offsets: Int64s
    map: npt.NDArray[np.int32]
    key: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of some positions of an order, one after the other.

    Attributes:
        source: The number of the source of each row in `Order.sources`.
        row: The index of the row in its source; `Order.origins` tells where it is stored, if the
            source is a part of a data set.
        epoch: How often `repeat` has begun anew; nested repeats count on.
        map: The numbers of the maps that each row goes through, the first to be applied first;
            -1 where a row has fewer. One line per row. Maps are numbered from the sources on,
            and from the first part of a mix on.
        key: The seed of the random numbers of each of these maps.
        start: The first element of each row that is in its window or pack; None without these.
        stop: Where these elements end; -1 for all elements of the row.
        groups: The batches and packs that the positions consist of, the outer ones first.
    """

    __module__ = "ingot.order"

    source: npt.NDArray[np.int32]
    row: Int64s
    epoch: Int64s
    map: npt.NDArray[np.int32]
    key: npt.NDArray[np.uint64]
    start: Int64s | None
    stop: Int64s | None
    groups: tuple[Groups, ...]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def offsets(self) -> Int64s | None:
        """Where the rows of each position begin, and the last ones end; None if it is one each."""
        if not self.groups:
            return None
        offsets = self.groups[0].offsets
        for inner in self.groups[1:]:
            offsets = inner.offsets[offsets]
        return offsets


def rows_of(told: Told) -> Rows:
    """Return what the engine has told as arrays."""
    columns, levels = told
    source = _array(columns[0], np.int32)
    row, epoch, start, stop = (_array(one, np.int64) for one in columns[1:])
    *groups, (_, width, maps, keys) = levels
    has_cuts = len(start) == len(row) and len(row) > 0
    return Rows(
        source,
        row,
        epoch,
        _array(maps, np.int32).reshape(len(row), width),
        _array(keys, np.uint64).reshape(len(row), width),
        start if has_cuts else None,
        stop if has_cuts else None,
        tuple(map(_groups, groups)),
    )


def _groups(level: Level) -> Groups:
    offsets, width, maps, keys = level
    places = _array(offsets, np.int64)
    shape = (len(places) - 1, width)
    return Groups(
        places, _array(maps, np.int32).reshape(shape), _array(keys, np.uint64).reshape(shape)
    )


def _array(content: bytearray, kind: Any) -> npt.NDArray[Any]:
    return np.frombuffer(content, kind)
