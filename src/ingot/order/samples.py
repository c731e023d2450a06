"""Samples and columns from rows: reading, cutting, mapping and grouping."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset import Dataset
from ingot.dataset.nested import deep, deep_each
from ingot.dataset.read.dataset import selection_of
from ingot.dataset.read.plan import Fetched, Plan, fetch
from ingot.dataset.read.source import Source
from ingot.dataset.read.values import back, merged, rows_of
from ingot.errors import counted
from ingot.order.arguments import Samples
from ingot.order.node import Map, Node
from ingot.order.pictures import Pictures
from ingot.order.rows import Int64s, Rows

Cuts: TypeAlias = list[tuple[int, int | None]] | None
Share: TypeAlias = tuple[int, npt.NDArray[np.int64]]
"""The number of a source, and the places of its rows among others."""


@dataclass(frozen=True, slots=True)
class Content:
    """What sources have for some rows.

    Attributes:
        shares: Which rows are of which source.
        stored: What data sets have, not decoded yet.
        items: What each other source has, by its number.
    """

    shares: Sequence[Share]
    stored: Fetched
    items: Mapping[int, list[Any]]


def samples_of(node: Node, rows: Rows) -> list[Any]:
    """Return the samples of positions by their rows, with one read for all data sets."""
    (content,) = read(node, [rows])
    return transformed(node, items_of(node, content), rows)


def read(
    node: Node, batches: Sequence[Rows], instead: Mapping[int, Source] | None = None
) -> list[Content]:
    """Read batches of rows: one native call for all data sets, one read for each other source.

    Args:
        node: The last step of an order.
        batches: Rows of it.
        instead: What to read the rows of some data sets from, by the number of the source.
    """
    instead = instead or {}
    shares = [_shares(node, rows) for rows in batches]
    plans = [
        [
            _plan(node, rows, share, instead.get(share[0]))
            for share in own
            if _is_dataset(node, share[0])
        ]
        for rows, own in zip(batches, shares, strict=True)
    ]
    others: list[dict[int, list[Any]]] = [{} for _ in batches]
    for number in {number for own in shares for number, _ in own}:
        if not _is_dataset(node, number):
            wanted = [
                (k, places) for k, own in enumerate(shares) for n, places in own if n == number
            ]
            parts = [(batches[k], places) for k, places in wanted]
            for (k, _), items in zip(
                wanted, _read_source(node.sources[number], parts), strict=True
            ):
                others[k][number] = items
    return list(map(Content, shares, fetch(plans), others))


def _is_dataset(node: Node, number: int) -> bool:
    return isinstance(node.sources[number], Dataset)


def transformed(
    node: Node, items: list[Any], rows: Rows, check: Callable[[], object] = lambda: None
) -> list[Any]:
    """Return the samples that maps, batches and packs make of the items of rows.

    Args:
        node: The last step of the order.
        items: What the sources have for the rows.
        rows: The rows.
        check: Called before each sample that goes through maps; what it raises is raised.
    """
    items = _mapped(node.maps, items, (rows.map, rows.key), check)
    for groups in reversed(rows.groups):
        lists = [items[start:stop] for start, stop in pairwise(groups.offsets.tolist())]
        items = _mapped(node.maps, lists, (groups.map, groups.key), check)
    return items


def _mapped(
    maps: Sequence[Map],
    items: list[Any],
    steps: tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64]],
    check: Callable[[], object],
) -> list[Any]:
    numbers, keys = steps
    if not numbers.shape[1]:
        return items
    mapped = []
    for item, own, seeds in zip(items, numbers.tolist(), keys.tolist(), strict=True):
        check()
        sample = item
        for number, seed in zip(own, seeds, strict=True):
            if number >= 0:
                sample = maps[number].apply(sample, seed)
        mapped.append(sample)
    return mapped


def items_of(node: Node, content: Content) -> list[Any]:
    """Return what the sources have for rows."""
    batches = iter(content.stored.decode())
    items: list[Any] = [None] * sum(len(places) for _, places in content.shares)
    for number, places in content.shares:
        source: Any = node.sources[number]
        if isinstance(source, Dataset):
            batch, fields = next(batches), source.spec.fields
            flat = rows_of(batch, fields, len(places), copy=False)
            found = list(deep_each(flat, fields))
        else:
            found = content.items[number]
        if len(content.shares) == 1:
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


def _plan(node: Node, rows: Rows, share: Share, instead: Source | None) -> Plan:
    """Return the plan to read some rows of a data set."""
    number, places = share
    selection = selection_of(node.sources[number])  # type: ignore[arg-type]
    source = selection.source if instead is None else instead
    wanted: dict[str, Any] = dict.fromkeys(selection.names)
    cuts = _cuts(rows, places)
    if cuts is not None:
        elements = [(*cut, None) for cut in cuts]
        wanted |= dict.fromkeys(node.cut_fields[number], elements)
    return source.plan(selection.resolve(rows.row[places]), wanted)


def _read_source(source: Samples, parts: Sequence[tuple[Rows, Int64s]]) -> Iterator[list[Any]]:
    """Read some rows of each of several batches, in one read."""
    found = _read_rows(source, np.concatenate([rows.row[places] for rows, places in parts]))
    start = 0
    for rows, places in parts:
        items = found[start : start + len(places)]
        start += len(places)
        cuts = _cuts(rows, places)
        if cuts is not None:
            items = [item[slice(*cut)] for item, cut in zip(items, cuts, strict=True)]
        yield items


def _read_rows(source: Samples, rows: Int64s) -> list[Any]:
    read_many = getattr(source, "__getitems__", None)
    if read_many is not None:
        items = list(read_many(rows))
        if len(items) != len(rows):
            raise ValueError(
                f"__getitems__ of {type(source).__name__} returned {len(items)} items for "
                f"{counted(len(rows), 'row')}"
            )
        return items
    return [source[row] for row in rows.tolist()]


class Columns:
    """Reads the rows of positions as columns, as `Dataset.read` does.

    Args:
        node: The last step of an order. All of its sources are data sets with the same fields.
        pictures: What every sample goes through, one after the other: nothing else.
        sources: The rows of each source, by its number, with these fields as they are stored.
    """

    def __init__(
        self, node: Node, pictures: Sequence[Pictures], sources: Mapping[int, Source]
    ) -> None:
        self._node = node
        self._pictures = pictures
        self._sources = sources
        self._fields = selection_of(node.sources[0]).spec.fields  # type: ignore[arg-type]

    @classmethod
    def of(cls, node: Node) -> "Columns | None":
        """Return the columns of an order; None if its samples must be read as rows."""
        if node.native.num_groups or not _has_same_fields(node):
            return None
        pictures = _pictures(node)
        if pictures is None:
            return None
        selections = [selection_of(one) for one in node.sources if isinstance(one, Dataset)]
        fields = selections[0].spec.fields
        names = [one.field for one in pictures]
        if len(set(names)) < len(names):
            return None
        if not all(one.field in fields and one.reads(fields[one.field]) for one in pictures):
            return None
        sources = [one.source for one in selections]
        if names:
            try:
                sources = [one.raw(names) for one in sources]
            except TypeError:  # Files of others, which are decoded as they are read.
                return None
        return cls(node, pictures, dict(enumerate(sources)))

    def fetch(self, batches: Sequence[Rows]) -> list[Content]:
        """Read batches of rows, in one native call."""
        return read(self._node, batches, self._sources)

    def decode(self, rows: Rows, content: Content) -> dict[str, Any]:
        """Return the columns of at least one row, which `fetch` has read."""
        found = content.stored.decode()
        if len(found) == 1:
            columns = found[0]
        else:
            order = back([places for _, places in content.shares])
            columns = merged(found, order, self._fields)
        for k, one in enumerate(self._pictures):
            codec = self._fields[one.field].codec
            columns[one.field] = one.of_files(codec, columns[one.field], rows.key[:, k])
        return deep(columns)


def _has_same_fields(node: Node) -> bool:
    fields = {
        frozenset((name, field.type) for name, field in source.spec.fields.items())
        if isinstance(source, Dataset)
        else None
        for source in node.sources
    }
    return len(fields) == 1 and None not in fields


def _pictures(node: Node) -> tuple[Pictures, ...] | None:
    """Return what every sample goes through; None if that differs, or is of another kind."""
    below = {_pictures(part) for part in node.parts} or {()}
    if len(below) > 1:
        return None
    (found,) = below
    if not isinstance(node, Map) or found is None:
        return found
    return (*found, node.function) if isinstance(node.function, Pictures) else None
