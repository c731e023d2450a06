"""Samples from rows: reading, cutting, mapping and grouping."""

from collections.abc import Sequence
from itertools import compress, pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset import Dataset
from ingot.dataset.nested import deep, deep_each
from ingot.dataset.read import iteration
from ingot.dataset.read.dataset import selection_of
from ingot.dataset.read.merging import back, merged
from ingot.dataset.read.plan import read_all
from ingot.order.node import Map, Node
from ingot.order.rows import Int64s, Rows

Cuts: TypeAlias = list[tuple[int, int | None]] | None
Share: TypeAlias = tuple[int, npt.NDArray[np.int64]]
"""The number of a source, and the places of its rows among others."""


def samples_of(node: Node, rows: Rows) -> list[Any]:
    """Return the samples of positions by their rows, with one read for all data sets."""
    return transformed(node, items_of(node, rows), rows)


def transformed(node: Node, items: list[Any], rows: Rows) -> list[Any]:
    """Return the samples that maps, batches and packs make of the items of rows."""
    items = _mapped(node.maps, items, rows.map, rows.key)
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


def has_columns(node: Node) -> bool:
    """Whether all samples are rows of data sets with the same fields, as they are stored."""
    if node.maps or node.native.num_groups:
        return False
    fields = {
        frozenset((name, field.type) for name, field in source.spec.fields.items())
        if isinstance(source, Dataset)
        else None
        for source in node.sources
    }
    return len(fields) == 1 and None not in fields


def columns_of(node: Node, rows: Rows) -> dict[str, Any]:
    """Return the rows of positions as columns, as `Dataset.read` does, in one native call.

    Args:
        node: The last step of an order, of which `has_columns` is true.
        rows: At least one row.
    """
    shares = _shares(node, rows)
    found = _read_plans(node, rows, shares)
    if len(found) == 1:
        return deep(found[0])
    order = back([places for _, places in shares])
    return deep(merged(found, order, selection_of(node.sources[0]).spec.fields))  # type: ignore[arg-type]


def items_of(node: Node, rows: Rows) -> list[Any]:
    """Return what the sources have for rows: one read for all data sets, and one per other."""
    items: list[Any] = [None] * len(rows)
    shares = _shares(node, rows)
    is_dataset = [isinstance(node.sources[number], Dataset) for number, _ in shares]
    of_datasets = list(compress(shares, is_dataset))
    batches = iter(_read_plans(node, rows, of_datasets) if of_datasets else ())
    for number, places in shares:
        source: Any = node.sources[number]
        if isinstance(source, Dataset):
            batch, fields = next(batches), source.spec.fields
            flat = iteration.rows_of(batch, fields, len(places), copy=False)
            found = list(deep_each(flat, fields))
        else:
            found = _read_source(source, rows.row[places], _cuts(rows, places))
        if len(shares) == 1:
            return found
        for place, item in zip(places.tolist(), found, strict=True):
            items[place] = item
    return items


def _shares(node: Node, rows: Rows) -> list[Share]:
    """Return the places of the rows of each source; sources that are read alike are one."""
    first: dict[Any, int] = {}
    kinds = zip(map(id, node.sources), node.cut_fields, strict=True)
    same = [first.setdefault(kind, k) for k, kind in enumerate(kinds)]
    if len(first) == 1:
        return [(0, np.arange(len(rows)))] if len(rows) else []
    numbers = np.asarray(same, np.int32)[rows.source]
    return [(number, np.flatnonzero(numbers == number)) for number in np.unique(numbers).tolist()]


def _cuts(rows: Rows, places: npt.NDArray[np.int64]) -> Cuts:
    """Return start and stop of the elements of some rows; None if rows are not cut."""
    if rows.start is None or rows.stop is None:
        return None
    ends = zip(rows.start[places].tolist(), rows.stop[places].tolist(), strict=True)
    return [(first, None if last < 0 else last) for first, last in ends]


def _read_plans(node: Node, rows: Rows, shares: Sequence[Share]) -> list[dict[str, Any]]:
    """Read the rows of data sets, in one native call."""
    plans = []
    for number, places in shares:
        selection = selection_of(node.sources[number])  # type: ignore[arg-type]
        wanted: dict[str, Any] = dict.fromkeys(selection.names)
        cuts = _cuts(rows, places)
        if cuts is not None:
            elements = [(*cut, None) for cut in cuts]
            wanted |= dict.fromkeys(node.cut_fields[number], elements)
        plans.append(selection.source.plan(selection.resolve(rows.row[places]), wanted))
    return read_all(plans)


def _read_source(source: Sequence[Any], rows: Int64s, cuts: Cuts) -> list[Any]:
    found = _read_rows(source, rows)
    if cuts is None:
        return found
    return [item[slice(*cut)] for item, cut in zip(found, cuts, strict=True)]


def _read_rows(source: Sequence[Any], rows: Int64s) -> list[Any]:
    read_many = getattr(source, "__getitems__", None)
    if read_many is not None:
        return list(read_many(rows))
    return [source[row] for row in rows.tolist()]
