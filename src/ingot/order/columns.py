"""Batches of rows as columns, without going through samples."""

from collections.abc import Mapping, Sequence
from typing import Any

from ingot.dataset import Dataset
from ingot.dataset.nested import deep
from ingot.dataset.read.dataset import selection_of
from ingot.dataset.read.source import Source
from ingot.dataset.read.values import back, merged
from ingot.order.node import Map, Node
from ingot.order.pictures import Pictures
from ingot.order.reading import Content, read
from ingot.order.rows import Rows


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
