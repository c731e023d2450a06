"""Samples from rows: reading, cutting, mapping and grouping."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset import Dataset
from ingot.dataset.nested import deep
from ingot.dataset.read import iteration
from ingot.dataset.read.dataset import selection_of
from ingot.dataset.read.plan import Joint, Plan, read
from ingot.dataset.read.stacking import stacked
from ingot.order.node import Map, Node
from ingot.order.rows import Int64s, Rows

Cuts: TypeAlias = list[tuple[int, int | None]] | None


def samples_of(node: Node, rows: Rows) -> list[Any]:
    """Return the samples of positions by their rows, with one read for each source."""
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
    numbers = np.unique(rows.source).tolist()
    shares = [np.flatnonzero(rows.source == number) for number in numbers]
    plans = [
        _plan(
            node.sources[number],
            rows.row[places],
            _cuts(rows, places),
            node.cut_fields[number],
        )
        for number, places in zip(numbers, shares, strict=True)
    ]
    if len(plans) == 1:
        return deep(read(plans[0]))
    return deep(read(Joint(plans, lambda found: _merged(found, shares, len(rows)))))


def _merged(
    found: Sequence[dict[str, Any]], shares: Sequence[npt.NDArray[np.intp]], count: int
) -> dict[str, Any]:
    return {name: _scattered([one[name] for one in found], shares, count) for name in found[0]}


def _scattered(parts: Sequence[Any], shares: Sequence[npt.NDArray[np.intp]], count: int) -> Any:
    """Return the values of several parts, each at its places."""
    first = parts[0]
    if all(isinstance(one, np.ndarray) and _fits(one, first) for one in parts):
        whole = np.empty((count, *first.shape[1:]), first.dtype)
        for part, places in zip(parts, shares, strict=True):
            whole[places] = part
        return whole
    values: list[Any] = [None] * count
    for part, places in zip(parts, shares, strict=True):
        for place, value in zip(places.tolist(), part, strict=True):
            values[place] = value
    return stacked(values)


def _fits(one: npt.NDArray[Any], other: Any) -> bool:
    return (
        isinstance(other, np.ndarray)
        and one.dtype == other.dtype
        and one.shape[1:] == other.shape[1:]
    )


def items_of(node: Node, rows: Rows) -> list[Any]:
    """Return what the sources have for rows, with one read for each source."""
    first: dict[int, int] = {}
    same = [first.setdefault(id(source), k) for k, source in enumerate(node.sources)]
    numbers = np.asarray(same, np.int32)[rows.source] if len(first) < len(same) else rows.source
    if len(first) == 1:
        return _read_source(node.sources[0], rows.row, _cuts(rows), node.cut_fields[0])
    items: list[Any] = [None] * len(rows)
    for number in np.unique(numbers).tolist():
        places = np.flatnonzero(numbers == number)
        cuts, fields = _cuts(rows, places), node.cut_fields[number]
        found = _read_source(node.sources[number], rows.row[places], cuts, fields)
        for place, item in zip(places.tolist(), found, strict=True):
            items[place] = item
    return items


def _cuts(rows: Rows, places: npt.NDArray[np.intp] | slice = slice(None)) -> Cuts:
    """Return start and stop of the elements of some rows; None if rows are not cut."""
    if rows.start is None or rows.stop is None:
        return None
    ends = zip(rows.start[places].tolist(), rows.stop[places].tolist(), strict=True)
    return [(first, None if last < 0 else last) for first, last in ends]


def _read_source(
    source: Sequence[Any], rows: Int64s, cuts: Cuts, fields: Sequence[str]
) -> list[Any]:
    if cuts is None:
        return _read_rows(source, rows)
    if not isinstance(source, Dataset):
        found = _read_rows(source, rows)
        return [item[slice(*cut)] for item, cut in zip(found, cuts, strict=True)]
    batch = read(_plan(source, rows, cuts, fields))
    found = iteration.rows_of(batch, source.spec.fields, len(rows), copy=False)
    return [deep(row) for row in found]


def _plan(source: Any, rows: Int64s, cuts: Cuts, fields: Sequence[str]) -> Plan:
    selection = selection_of(source)
    wanted: dict[str, Any] = dict.fromkeys(selection.names)
    if cuts is not None:
        elements = [(*cut, None) for cut in cuts]
        wanted |= dict.fromkeys(fields, elements)
    return selection.source.plan(selection.resolve(rows), wanted)


def _read_rows(source: Sequence[Any], rows: Int64s) -> list[Any]:
    read_many = getattr(source, "__getitems__", None)
    if read_many is not None:
        return list(read_many(rows))
    return [source[row] for row in rows.tolist()]
