"""The columns of Arrow that fields become, with the types that they once had."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ingot.codecs.signature import is_file_type
from ingot.dataset.nested import DOT
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError
from ingot.formats.arrow.leaf import BYTES, PATH, leaves_of
from ingot.formats.arrow.library import pyarrow
from ingot.formats.arrow.metadata import features_in, schema_in
from ingot.formats.arrow.packing import valid
from ingot.formats.arrow.types import is_list, storage


class Column(NamedTuple):
    """A field as a column, or as a part of a struct.

    Attributes:
        field: The field.
        path: The names that lead to its values.
        kind: The type that they should have, of type pyarrow.DataType; None for the usual one.
        paths: For files that had paths: the field with these, or an empty text.
    """

    field: Field
    path: tuple[str, ...]
    kind: Any
    paths: str | None = None


def columns_of(spec: Spec, metadata: Mapping[str, Any], where: str) -> list[Column]:
    """Return the fields as columns; those that came from Arrow have the types they had there."""
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
            found.append(Column(field, tuple(name.split(DOT)), None))
            continue
        paths = None
        if leaf.media is not None:
            paths = f"{name}_{PATH}" if f"{name}_{PATH}" in spec.fields else ""
            taken.add(paths)
        found.append(Column(field, leaf.path, _kind_at(schema, leaf.path), paths))
    return [one for one in found if one.field.name not in taken or one.field.name in known]


def _fits(field: Field, leaf: Any) -> bool:
    is_file = leaf.type == "bytes" and is_file_type(field.codec.name) and not field.is_sequence
    return is_file or field.type.removesuffix("?") == leaf.type


def _kind_at(schema: Any, path: tuple[str, ...]) -> Any:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = storage(kind).field(name).type
    return kind


def restored(array: Any, kind: Any) -> Any:  # noqa: PLR0911
    """Return plain values as values of a type; None for the usual one of such values."""
    pa = pyarrow()
    if array.type == kind:
        return array
    if kind is None:
        return array.cast(_usual(array.type))
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(restored(array, kind.storage_type))
    if pa.types.is_null(kind):
        return pa.nulls(len(array))
    if pa.types.is_dictionary(kind):
        encoded = restored(array, kind.value_type).dictionary_encode()
        indices = encoded.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)
    if is_list(array.type) and is_list(kind):
        return _relisted(array, kind)
    return array.cast(kind)


def _relisted(array: Any, kind: Any) -> Any:
    """Return lists as lists of another kind, whose elements are restored."""
    pa = pyarrow()
    if pa.types.is_fixed_size_list(array.type) and not pa.types.is_fixed_size_list(kind):
        array = array.cast(pa.large_list(array.type.value_type))
    if pa.types.is_fixed_size_list(array.type):
        # A null list has elements, too, which `flatten` would leave out.
        size = array.type.list_size
        every = array.values[array.offset * size :][: len(array) * size]
        while is_list(every.type) and not is_list(kind.value_type):  # A tensor is stored flat.
            every = every.flatten()
        values = restored(every, kind.value_type)
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=_mask(array))
    if pa.types.is_fixed_size_list(kind):
        return array.cast(kind)
    ends = array.offsets.to_numpy().astype(np.int64)
    values = restored(array.values[int(ends[0]) : int(ends[-1])], kind.value_type)
    is_large = pa.types.is_large_list(kind)
    offsets = pa.array(ends - ends[0], pa.int64() if is_large else pa.int32())
    made = pa.LargeListArray if is_large else pa.ListArray
    return made.from_arrays(offsets, values, type=kind, mask=_mask(array))


def _mask(array: Any) -> Any:
    return pyarrow().array(~valid(array)) if array.null_count else None


def _usual(kind: Any) -> Any:
    """Return a type with offsets of 32 bits, which more programs read."""
    pa = pyarrow()
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_usual(kind.value_type), kind.list_size)
    return pa.list_(_usual(kind.value_type)) if pa.types.is_large_list(kind) else kind


def files_of(array: Any, paths: Any, kind: Any) -> Any:
    """Return files as Hugging Face stores them: their bytes, and their paths if they had any."""
    pa = pyarrow()
    own = storage(kind)
    parts = {BYTES: array.cast(own.field(BYTES).type)}
    empty = pa.nulls(len(array), own.field(PATH).type)
    parts[PATH] = empty if paths is None else paths.cast(own.field(PATH).type)
    ordered = [parts[one.name] for one in own]
    both = ~valid(parts[BYTES]) & ~valid(parts[PATH])
    mask = pa.array(both) if both.any() else None
    return restored_struct(ordered, list(own), mask)


def restored_struct(arrays: list[Any], fields: list[Any], mask: Any) -> Any:
    """Return parts as a struct, which is null where the mask is true."""
    return pyarrow().StructArray.from_arrays(arrays, fields=fields, mask=mask)


def struct_of(parts: Mapping[str, Any]) -> Any:
    """Return nested parts as a struct, which is null where all of them are."""
    pa = pyarrow()
    arrays = {
        name: struct_of(one) if isinstance(one, Mapping) else one for name, one in parts.items()
    }
    missing = np.logical_and.reduce([~valid(one) for one in arrays.values()])
    fields = [pa.field(name, one.type) for name, one in arrays.items()]
    mask = pa.array(missing) if missing.any() else None
    return restored_struct(list(arrays.values()), fields, mask)


def nested(columns: list[Column], arrays: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a table, with structs for fields that are nested."""
    tree: dict[str, Any] = {}
    for one in columns:
        inner = tree
        for name in one.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[one.path[-1]] = arrays[one.field.name]
    for name, found in tree.items():
        yield name, struct_of(found) if isinstance(found, dict) else found
