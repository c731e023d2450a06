"""Where the rows of an order are stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ingot.dataset import Dataset
from ingot.dataset.read.dataset import selection_of
from ingot.order.arguments import Samples
from ingot.order.rows import Int64s, Rows
from ingot.records import Reader, View
from ingot.records.indices import numbers_at

_SHOWN = 4


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
