"""Which rows some positions of an order are, and where they are stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset import Dataset
from ingot.dataset.read.dataset import selection_of
from ingot.order.arguments import Samples
from ingot.records import Reader, View
from ingot.records.indices import numbers_at

Int64s: TypeAlias = npt.NDArray[np.int64]
Level: TypeAlias = tuple[bytearray, int, bytearray, bytearray]
Told: TypeAlias = tuple[Sequence[bytearray], Sequence[Level]]

_SHOWN = 4


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


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a row is stored.

    Attributes:
        row: The number of the row in the data set or reader that was opened, as `verify` and
            errors count it.
        path: What was opened: a directory or a file; None if the source has no path.
        file: The file with the row; None if the row is in several, or in none.
    """

    __module__ = "ingot.order"

    row: int
    path: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        return text_of([self])


def text_of(origins: Sequence[Origin]) -> str:
    """Return the rows of a sample in words, such as `row 7 of cats, in 000001-9f.ingot`."""
    shown = ", ".join(str(one.row) for one in origins[:_SHOWN])
    more = ", ..." if len(origins) > _SHOWN else ""
    rows = f"{'row' if len(origins) == 1 else 'rows'} {shown}{more}"
    path, file = origins[0].path, origins[0].file
    if path is None:
        return rows
    if file is None or file == path or any(one.file != file for one in origins):
        return f"{rows} of {Path(path).name}"
    name = Path(path).name if Path(file).is_relative_to(path) else "all files"
    return f"{rows} of {name}, in {Path(file).name}"


def origins_of(sources: Sequence[Samples], rows: Rows) -> list[Origin]:
    """Return where rows are stored, without reading them."""
    found: list[Any] = [None] * len(rows)
    for number in np.unique(rows.source).tolist():
        places = np.flatnonzero(rows.source == number)
        of_source = _of_sequence(sources[number], rows.row[places])
        for place, origin in zip(places.tolist(), of_source, strict=True):
            found[place] = origin
    return found


def _of_sequence(source: Samples, numbers: Int64s) -> list[Origin]:
    match source:
        case Dataset():
            selection = selection_of(source)
            runs = selection.source.runs(selection.numbers(numbers))
            each = (_in_files(one.path, one.paths, one.counts, own) for one, own in runs)
            return [origin for run in each for origin in run]
        case View():
            return _of_sequence(source.reader, numbers_at(source.rows, numbers))
        case Reader():
            counts = b"" if source.closed else source._file_rows()  # noqa: SLF001 -- of this library
            return _in_files(source.path, source.paths, np.frombuffer(counts, np.int64), numbers)
    path = getattr(source, "path", None)
    return [Origin(row, path if isinstance(path, str) else None) for row in numbers.tolist()]


def _in_files(
    path: str, files: Sequence[str], counts: Sequence[int] | Int64s, numbers: Int64s
) -> list[Origin]:
    if len(files) != len(counts):
        return [Origin(row, path) for row in numbers.tolist()]
    which = np.searchsorted(np.cumsum(counts), numbers, side="right").tolist()
    pairs = zip(numbers.tolist(), which, strict=True)
    return [Origin(row, path, files[k]) for row, k in pairs]
