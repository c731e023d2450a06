"""Figures about files and fields: what `ingot info` shows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.cli.values import plain
from ingot.dataset import Dataset
from ingot.dataset.manifest import Manifest
from ingot.dataset.read.dataset import selection_of
from ingot.dataset.spec import Field
from ingot.formats.table import format_named, format_of
from ingot.records import Reader, Stats

_SAMPLE = 10_000


@dataclass(frozen=True, slots=True)
class FieldFigures:
    """A field.

    Attributes:
        name: Its name.
        type: Its type.
        place: Where its values are: in the index, or in cells of the rows.
        nbytes: The bytes of its values before compression, from a sample; None if unknown.
    """

    name: str
    type: str
    place: str
    nbytes: int | None


@dataclass(frozen=True, slots=True)
class FileFigures:
    """A file.

    Attributes:
        name: Its name.
        nbytes: Its size.
        rows: The number of its rows; None if that takes opening it.
    """

    name: str
    nbytes: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Figures about records or a data set; see `ingot info`."""

    path: str
    format: str
    rows: int
    file_bytes: int
    index_bytes: int | None
    value_bytes: int | None
    compression: str
    closed: bool | None
    fields: list[FieldFigures] | None
    files: list[FileFigures]
    metadata: dict[str, Any]
    others: list[str]

    def content(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self) | {"metadata": plain(self.metadata, full=True)}


def layout_of(found: Reader | Dataset) -> Layout:
    """Return the figures of what is open."""
    stats = found.stats()
    is_rows = isinstance(found, Dataset)
    fields = _fields(found) if isinstance(found, Dataset) else None
    values = _total(fields) if fields is not None else _record_bytes(found)
    in_index = sum(one.nbytes or 0 for one in fields or () if one.place == "index")
    cells = None if values is None else values - in_index
    return Layout(
        path=found.path,
        format=_format(found),
        rows=len(found),
        file_bytes=found.nbytes,
        index_bytes=stats.index_bytes,
        value_bytes=values,
        compression=_compression(_format(found), stats, found.nbytes, cells),
        closed=stats.closed,
        fields=fields,
        files=_files(found),
        metadata=found.metadata,
        others=list(found.others) if is_rows else [],  # type: ignore[union-attr]
    )


def _format(found: Reader | Dataset) -> str:
    if isinstance(found, Dataset):
        return selection_of(found).source.format
    known = format_of(found.paths[0] if found.paths else found.path)
    return "ingot" if known is None else known.name


def _sample(count: int) -> npt.NDArray[np.int64]:
    """Return the numbers of rows that lie evenly across all."""
    sample = min(count, _SAMPLE)
    return np.arange(sample, dtype=np.int64) * count // max(1, sample)


def _record_bytes(found: Reader | Dataset) -> int | None:
    rows = _sample(len(found))
    if not isinstance(found, Reader) or not len(rows):
        return 0
    return round(float(found.lengths(rows).mean()) * len(found))


def _fields(dataset: Dataset) -> list[FieldFigures]:
    source = selection_of(dataset).source
    sizes = source.field_bytes(_sample(len(source)))
    has_index = source.stats().index_bytes is not None
    return [
        FieldFigures(name, one.type, _place(one, has_index=has_index), sizes.get(name))
        for name, one in dataset.spec.fields.items()
    ]


def _place(field: Field, *, has_index: bool) -> str:
    if not has_index:
        return "column"
    return {"column": "index", "cell": "cell", "sequence": "cells"}[field.kind]


def _total(fields: Sequence[FieldFigures]) -> int | None:
    known = [one.nbytes for one in fields if one.nbytes is not None]
    return sum(known) if len(known) == len(fields) else None


def _compression(format_name: str, stats: Stats, file_bytes: int, cells: int | None) -> str:
    """Return how the values are stored, judged by the sizes."""
    if format_named(format_name).is_text:
        return "as text"
    if stats.index_bytes is None or not cells:
        return "compression unknown"
    if stats.dictionaries:
        count = stats.dictionaries
        return f"zstd with {'a dictionary' if count == 1 else f'{count:,} dictionaries'}"
    # The index of files of others is not in them.
    stored = file_bytes - (0 if format_named(format_name).is_indexed else stats.index_bytes)
    return "compressed" if stored < 0.98 * cells else "not compressed"


def _files(found: Reader | Dataset) -> list[FileFigures]:
    if isinstance(found, Dataset):
        source = selection_of(found).source
        folder = Path(source.path)
        manifest = Manifest.find(folder) if folder.is_dir() else None
        if manifest is not None:
            return [FileFigures(one.name, one.nbytes, one.rows) for one in manifest.shards]
    paths = [Path(path) for path in found.paths]
    rows: list[int | None] = [None] * len(paths)
    if isinstance(found, Reader):
        rows = [*np.frombuffer(found._file_rows(), np.int64).tolist()]  # noqa: SLF001
    elif len(paths) == 1:
        rows = [len(found)]
    return [
        FileFigures(path.name, _size(path), count) for path, count in zip(paths, rows, strict=True)
    ]


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(one.stat().st_size for one in path.iterdir() if one.is_file())
    # A location inside an HDF5 file is part of that file.
    return next(one for one in (path, *path.parents) if one.exists()).stat().st_size
