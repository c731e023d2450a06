"""The columns of Arrow that fields become, with the types that they once had."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ingot._core import ArrowArray, arrow_fits, arrow_schema, common_array, split_bytes
from ingot.codecs import Array, Msgpack, Tree
from ingot.codecs.array import dtype_of
from ingot.codecs.signature import is_file_type
from ingot.dataset.nested import DOT
from ingot.dataset.spec import Field, Spec
from ingot.dataset.write.packed import PackedField
from ingot.errors import FormatError
from ingot.formats.arrow.file import pyarrow
from ingot.formats.arrow.schema import (
    BYTES,
    PATH,
    Kind,
    Layout,
    features_in,
    layout_of,
    leaves_of,
    lists_of,
    schema_in,
    usual,
)
from ingot.interchange.arrays import inferred, plain_array, restored

Packed: TypeAlias = Mapping[str, PackedField]
"""The stored values of fields by name, and under `NAME?` which rows have an optional one."""

Part: TypeAlias = Any
"""What `ArrowArray.made` makes a column of."""

_OTHERS = "leave the field out with names="


@dataclass(frozen=True, slots=True)
class Column:
    """A field as a column, or as a part of a struct.

    Attributes:
        field: The field.
        path: The names that lead to its values.
        wanted: The type that they should have; None for the usual one.
        paths: For files that had paths: the field with these, or an empty text.
    """

    field: Field
    path: tuple[str, ...]
    wanted: Kind | None = None
    paths: str | None = None

    @property
    def kind(self) -> Kind | None:
        """The type of the column; None if its first values tell."""
        if self.wanted is None:
            return usual(self.field, self.path[-1])
        return _possible(self.wanted)._replace(name=self.path[-1], flags=Kind("", "").flags)

    def found(self, stored: Packed) -> Kind:
        """Return the type that some values tell.

        Raises:
            ValueError: They are not of one type.
            TypeError: Arrow has no type for them.
        """
        if not isinstance(self.field.codec, Array):
            return Kind.of(pyarrow().field(self.path[-1], inferred(self._values(stored))))
        own, present = self._stored(stored)
        there = present if own.counts is None else None
        told = common_array(own.data, own.offsets, there)
        is_many = own.counts is not None
        name = "item" if is_many else self.path[-1]
        dtype = None if told is None else dtype_of(told[0])
        if dtype is not None and dtype.kind == "c":
            message = f"field {self.field.name!r}: Arrow has no type for {dtype}; {_OTHERS}"
            raise TypeError(message)
        kind = Kind(name, "n")
        if told is not None and dtype is not None:
            kind = lists_of(name, dtype.name, told[1])
        return Kind(self.path[-1], "+l", children=[kind]) if is_many else kind

    def part(self, kind: Kind, stored: Packed, count: int) -> Part:
        """Return the values of rows as a column of a type.

        Raises:
            ValueError: They are not of the type.
        """
        own, present = self._stored(stored)
        if self.paths is not None:
            found: dict[str, Part] = {BYTES: (("bytes", (), "one"), *own, present), PATH: None}
            if self.paths in stored:
                there = stored.get(f"{self.paths}?")
                told = None if there is None else there.data
                found[PATH] = (("text", (), "one"), *stored[self.paths], told)
            return [found[one.name] for one in kind.children]
        layout = layout_of(self.field)
        if layout is not None and arrow_fits(kind, layout):
            return (layout, *own, present)
        if layout is None:
            values = self._values(stored)
            if kind.format == "n" and any(one is not None for one in values):
                message = f"it has values in some rows, but none in the first; {_OTHERS}"
                raise ValueError(message)
            whose = "the first batch" if self.wanted is None else "the column that it once was"
            array = plain_array(values, _pyarrow_type(kind), whose)
        else:
            array = self._usual(layout, stored, count)
        return ArrowArray(restored(array, _pyarrow_type(kind)))

    def _stored(self, stored: Packed) -> tuple[PackedField, Any]:
        name = self.field.name
        return stored[name], stored[f"{name}?"].data if self.field.is_optional else None

    def _usual(self, layout: Layout, stored: Packed, count: int) -> Any:
        """Return values as an array of pyarrow, of the usual type."""
        kind = usual(self.field, "") or self.found(stored)
        own, present = self._stored(stored)
        made = ArrowArray.made(Kind("", "+s", children=[kind]), [(layout, *own, present)], count)
        return pyarrow().record_batch(made).column(0)

    def _values(self, stored: Packed) -> list[Any]:
        """Return nested values; None for null."""
        own, present = self._stored(stored)
        cells = iter(split_bytes(memoryview(own.data), own.offsets))
        decode = self.field.codec.decode
        count = len(own.offsets if own.counts is None else own.counts) // 8
        there = bytes([1]) * count if present is None else bytes(present)
        if own.counts is None:
            pairs = zip(cells, there, strict=False)
            return [decode(one) if has else None for one, has in pairs]
        lengths = zip(np.frombuffer(own.counts, np.uint64).tolist(), there, strict=True)
        return [
            [decode(next(cells)) for _ in range(length)] if has else None for length, has in lengths
        ]


def columns_of(
    spec: Spec, metadata: Mapping[str, Any], where: str, requested: Kind | None = None
) -> list[Column]:
    """Return the fields as columns; those that came from Arrow have the types they had there.

    Args:
        spec: The fields.
        metadata: Metadata with a schema, if there is one.
        where: The name of the data set in errors.
        requested: The columns that a consumer asks for, and their types, which are followed if
            stored values are such without being converted.

    Raises:
        TypeError: Arrow has no type for a field.
    """
    schema = schema_in(metadata, where)
    known = {}
    if schema is not None:
        try:
            known = {one.name: one for one in leaves_of(schema, features_in(metadata), where)}
        except FormatError:  # The metadata are from elsewhere.
            known = {}
    found = []
    taken = set()
    for name, field in spec.fields.items():
        leaf = known.get(name)
        if leaf is None or not _fits(field, leaf):
            found.append(Column(field, tuple(name.split(DOT))))
            continue
        paths = None
        if leaf.media is not None:
            paths = f"{name}_{PATH}" if f"{name}_{PATH}" in spec.fields else ""
            taken.add(paths)
        found.append(Column(field, leaf.path, leaf.kind, paths))
    columns = [one for one in found if one.field.name not in taken or one.field.name in known]
    if requested is not None:
        columns = _requested(columns, requested)
    for one in columns:
        is_nested = isinstance(one.field.codec, Tree | Msgpack)
        if one.paths is None and not is_nested and layout_of(one.field) is None:
            message = (
                f"{where}: field {one.field.name!r}: Arrow has no type for "
                f"{one.field.codec.name}; {_OTHERS}"
            )
            raise TypeError(message)
    return columns


def _fits(field: Field, leaf: Any) -> bool:
    is_file = leaf.type == "bytes" and is_file_type(field.codec.name) and not field.is_sequence
    return is_file or field.type.removesuffix("?") == leaf.type


def _requested(columns: Sequence[Column], requested: Kind) -> list[Column]:
    """Return the columns that a consumer asks for, in its order; all, if it names none of them."""
    found = []
    for wanted in requested.children:
        for one in columns:
            kind, layout = requested.at(one.path), layout_of(one.field)
            if one.path[0] != wanted.name or kind is None:
                continue
            is_native = one.paths is None and layout is not None and arrow_fits(kind, layout)
            found.append(Column(one.field, one.path, kind) if is_native else one)
    return found or list(columns)


def tree_of(columns: Sequence[Column]) -> dict[str, Any]:
    """Return columns by name, and parts of structs in dicts."""
    tree: dict[str, Any] = {}
    for one in columns:
        inner = tree
        for name in one.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[one.path[-1]] = one
    return tree


def kinds_of(tree: Mapping[str, Any], stored: Packed | None = None) -> Iterator[Kind | None]:
    """Yield the type of each column of a tree; None where values must be known to tell it."""
    for name, one in tree.items():
        if not isinstance(one, Column):
            inside = list(kinds_of(one, stored))
            yield None if None in inside else Kind(name, "+s", children=inside)  # type: ignore[arg-type]
        elif one.kind is None and stored is not None:
            with _naming(one.field):
                kind = one.found(stored)
            yield kind
        else:
            yield one.kind


def parts_of(
    tree: Mapping[str, Any], kinds: Sequence[Kind], stored: Packed, count: int
) -> list[Part]:
    """Return what the columns of a tree are made of.

    Raises:
        ValueError: Values are not of the type of their column.
    """
    found = []
    for one, kind in zip(tree.values(), kinds, strict=True):
        if not isinstance(one, Column):
            found.append(parts_of(one, kind.children, stored, count))
            continue
        with _naming(one.field):
            found.append(one.part(kind, stored, count))
    return found


@contextmanager
def _naming(field: Field) -> Iterator[None]:
    """Have errors about values name their field."""
    try:
        yield
    except ValueError as error:
        match error.args:
            case (str(reason), int(row)):
                raise ValueError(f"field {field.name!r}: {reason}", row) from error
        message = f"field {field.name!r}: {error}"
        raise ValueError(message) from error


def _possible(kind: Kind) -> Kind:
    """Return a type without dictionaries of nested values, which pyarrow cannot make."""
    inner = kind.dictionary
    if inner is not None and (inner.children or inner.dictionary is not None):
        return _possible(inner._replace(name=kind.name, flags=kind.flags))
    return kind._replace(children=[*map(_possible, kind.children)])


class _Described:
    """A type, for what takes `__arrow_c_schema__`."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def __arrow_c_schema__(self) -> object:
        return arrow_schema(self._kind)


def _pyarrow_type(kind: Kind) -> Any:
    return pyarrow().schema(_Described(Kind("", "+s", children=[kind]))).field(0).type
