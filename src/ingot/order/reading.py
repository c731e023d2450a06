"""Samples from rows: reading, cutting, mapping and grouping."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.dataset import Dataset
from ingot.dataset.nested import deep
from ingot.dataset.read import iteration
from ingot.dataset.read.dataset import selection_of
from ingot.order.node import Map, Node
from ingot.order.rows import Int64s, Rows


def samples_of(node: Node, rows: Rows) -> list[Any]:
    """Return the samples of positions by their rows, with one read for each source."""
    items = _mapped(node.maps, _read(node, rows), rows.map, rows.key)
    for groups in reversed(rows.groups):
        lists = [items[start:stop] for start, stop in pairwise(groups.offsets.tolist())]
        items = _mapped(node.maps, lists, groups.map, groups.key)
    return items


def _mapped(
    maps: Sequence[Map],
    items: list[Any],
    numbers: npt.NDArray[np.int32],
    keys: npt.NDArray[np.uint64],
) -> list[Any]:
    if not numbers.shape[1]:
        return items
    mapped = []
    for item, own, seeds in zip(items, numbers.tolist(), keys.tolist(), strict=True):
        sample = item
        for number, seed in zip(own, seeds, strict=True):
            if number >= 0:
                sample = _apply(maps[number], sample, seed)
        mapped.append(sample)
    return mapped


def _apply(one: Map, sample: Any, seed: int) -> Any:
    if one.takes_rng:
        return one.function(sample, rng=np.random.default_rng(seed))
    return one.function(sample)


def _read(node: Node, rows: Rows) -> list[Any]:
    first: dict[int, int] = {}
    same = [first.setdefault(id(source), k) for k, source in enumerate(node.sources)]
    numbers = np.asarray(same, np.int32)[rows.source] if len(first) < len(same) else rows.source
    if len(first) == 1:
        return _read_source(node.sources[0], rows.row, rows.start, rows.stop, node.cut_fields[0])
    items: list[Any] = [None] * len(rows)
    for number in np.unique(numbers).tolist():
        places = np.flatnonzero(numbers == number)
        start = None if rows.start is None else rows.start[places]
        stop = None if rows.stop is None else rows.stop[places]
        fields = node.cut_fields[number]
        found = _read_source(node.sources[number], rows.row[places], start, stop, fields)
        for place, item in zip(places.tolist(), found, strict=True):
            items[place] = item
    return items


def _read_source(
    source: Sequence[Any],
    rows: Int64s,
    start: Int64s | None,
    stop: Int64s | None,
    fields: Sequence[str],
) -> list[Any]:
    if start is None or stop is None:
        return _read_rows(source, rows)
    cuts = [
        (first, None if last < 0 else last)
        for first, last in zip(start.tolist(), stop.tolist(), strict=True)
    ]
    if not isinstance(source, Dataset):
        found = _read_rows(source, rows)
        return [item[slice(*cut)] for item, cut in zip(found, cuts, strict=True)]
    selection = selection_of(source)
    elements = [(*cut, None) for cut in cuts]
    batch = selection.read(
        selection.resolve(rows),
        {**dict.fromkeys(selection.names), **dict.fromkeys(fields, elements)},
    )
    found = iteration.rows_of(batch, selection.spec.fields, len(rows), copy=False)
    return [deep(row) for row in found]


def _read_rows(source: Sequence[Any], rows: Int64s) -> list[Any]:
    read_many = getattr(source, "__getitems__", None)
    if read_many is not None:
        return list(read_many(rows))
    return [source[row] for row in rows.tolist()]
