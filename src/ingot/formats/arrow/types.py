"""Types of Arrow, and the types of fields that they become."""

import json
from typing import Any, NamedTuple

import numpy as np

from ingot.formats.arrow.library import pyarrow

_DTYPES = {"halffloat": "float16", "float": "float32", "double": "float64"}
_NUMBERS = {"int64": "int", "double": "float", "bool": "bool"}
_ARRAY = "datasets.features.features.Array"
_NAME, _SERIALIZED = b"ARROW:extension:name", b"ARROW:extension:metadata"


class Shape(NamedTuple):
    """The shape of arrays that are stored as lists of lists; None for a length that varies."""

    lengths: tuple[int | None, ...]

    @property
    def is_fixed(self) -> bool:
        """Whether all arrays have one shape."""
        return None not in self.lengths


def storage(kind: Any) -> Any:
    """Return the type that the values of a type are stored as."""
    return kind.storage_type if isinstance(kind, pyarrow().BaseExtensionType) else kind


def shape_of(field: Any, feature: Any) -> Shape | None:
    """Return the shape that a field's type, or its feature, gives its arrays.

    Args:
        field: The field, of type pyarrow.Field.
        feature: Its feature as Hugging Face describes it, or None.
    """
    if isinstance(field.type, pyarrow().FixedShapeTensorType):
        order = field.type.permutation
        is_plain = order is None or list(order) == sorted(order)
        return Shape(tuple(field.type.shape)) if is_plain else None
    lengths: Any = None
    if isinstance(feature, dict) and str(feature.get("_type", "")) in _HF_ARRAYS:
        lengths = feature.get("shape")
    elif isinstance(field.type, pyarrow().ExtensionType):
        if field.type.extension_name.startswith(_ARRAY):
            lengths = getattr(field.type, "shape", None)
    elif (field.metadata or {}).get(_NAME, b"").startswith(_ARRAY.encode()):
        lengths = _loaded(field.metadata.get(_SERIALIZED))
    if not isinstance(lengths, list | tuple):
        return None
    each = tuple(lengths)
    is_valid = each and all(one is None or (type(one) is int and one >= 0) for one in each)
    return Shape(each) if is_valid else None


_HF_ARRAYS = {f"Array{dims}D" for dims in range(2, 6)}


def _loaded(serialized: bytes | None) -> Any:
    try:
        found = json.loads(serialized or b"null")
    except ValueError:
        return None
    return found[0] if isinstance(found, list) and found else None


def plain(kind: Any, *, text: bool) -> Any:  # noqa: PLR0911
    """Return the type to cast values to before they are packed; None if there is none.

    Times become numbers, decimals text, and dictionaries the values they stand for. A map stays
    as it is or has no plain type: pyarrow may end the process when it casts one.

    Args:
        kind: The type, of type pyarrow.DataType.
        text: Whether text stays text; else it becomes bytes.
    """
    pa = pyarrow()
    types = pa.types
    kind = storage(kind)
    if types.is_dictionary(kind):
        return plain(kind.value_type, text=text)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return kind
    if types.is_null(kind):
        return kind if text else pa.large_binary()
    if text and (_is_text(kind) or is_binary(kind)) and not _is_view(kind):
        return kind
    if types.is_decimal(kind) or _is_text(kind):
        return pa.large_string() if text else pa.large_binary()
    if is_binary(kind):
        return pa.large_binary()
    if types.is_temporal(kind) and not types.is_interval(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()  # noqa: PLR2004
    return _plain_nested(kind, text=text)


def cast_plain(array: Any, target: Any) -> Any:
    """Return values cast to their plain type."""
    kind = array.type
    if kind == target:
        return array
    types = pyarrow().types
    if types.is_decimal(kind) or (types.is_nested(kind) and "decimal" in str(kind)):
        array = array.cast(plain(kind, text=True))  # Only text becomes bytes.
    return array.cast(target)


def _plain_nested(kind: Any, *, text: bool) -> Any:
    pa = pyarrow()
    types = pa.types
    if types.is_struct(kind):
        each = [(one.name, plain(one.type, text=text)) for one in kind]
        return pa.struct(each) if each and all(one is not None for _, one in each) else None
    if types.is_map(kind):
        return kind if _is_tree(kind.key_type) and _is_tree(kind.item_type) else None
    if is_list(kind):
        inner = plain(kind.value_type, text=text)
        if inner is None:
            return None
        is_fixed = types.is_fixed_size_list(kind)
        return pa.list_(inner, kind.list_size) if is_fixed else pa.large_list(inner)
    return None


def _is_tree(kind: Any) -> bool:
    """Whether values are trees of numbers, text and bytes without being cast."""
    types = pyarrow().types
    if is_list(kind):
        return _is_tree(kind.value_type)
    if types.is_map(kind):
        return _is_tree(kind.key_type) and _is_tree(kind.item_type)
    if types.is_struct(kind):
        return bool(len(kind)) and all(_is_tree(one.type) for one in kind)
    return bool(plain(kind, text=True) == kind)


def _is_text(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_view(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_string_view(kind) or types.is_binary_view(kind))


def is_binary(kind: Any) -> bool:
    """Whether values are bytes."""
    types = pyarrow().types
    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    )


def is_list(kind: Any) -> bool:
    """Whether values are lists of one length, or of any."""
    types = pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def has_structs_in_lists(kind: Any, *, inside: bool = False) -> bool:
    """Whether values are, or contain, lists of structs."""
    types = pyarrow().types
    kind = storage(kind)
    if types.is_struct(kind):
        return inside or any(has_structs_in_lists(one.type) for one in kind)
    if types.is_map(kind):
        return has_structs_in_lists(kind.item_type, inside=True)
    return is_list(kind) and has_structs_in_lists(kind.value_type, inside=True)


def type_of(kind: Any, shape: Shape | None = None) -> str | None:
    """Return the type of a field whose values are of an Arrow type; None if there is none.

    Args:
        kind: The type, of type pyarrow.DataType; not a struct.
        shape: The shape of its arrays, if that is known.
    """
    if shape is not None:
        return _array(kind, shape)
    kind = storage(kind)
    types = pyarrow().types
    if types.is_dictionary(kind):
        return type_of(kind.value_type)
    if types.is_fixed_size_list(kind):
        return _fixed(kind)
    if types.is_list(kind) or types.is_large_list(kind):
        return _sequence(storage(kind.value_type))
    return _single(kind)


def _single(kind: Any) -> str | None:
    """Return the type of values that are not lists."""
    types = pyarrow().types
    if types.is_null(kind):
        return "tree"
    if types.is_decimal(kind) or _is_text(kind):
        return "utf8"
    if is_binary(kind):
        return "bytes"
    found = plain(kind, text=True)
    if found is None or types.is_map(found) or types.is_struct(found):
        return None if found is None else "tree"
    return _NUMBERS.get(str(found)) or f"array({dtype_of(found).name})"


def dtype_of(kind: Any) -> np.dtype[Any]:
    """Return the dtype of numbers of an Arrow type."""
    name = str(kind)  # `to_pandas_dtype` would need pandas.
    return np.dtype(_DTYPES.get(name, name))


def _array(kind: Any, shape: Shape) -> str | None:
    kind = storage(kind)
    while is_list(kind):
        kind = kind.value_type
    number = plain(kind, text=False)
    if number is None or not pyarrow().types.is_primitive(number):
        return None
    if not shape.is_fixed:
        return "array"
    return f"array({','.join([dtype_of(number).name, *map(str, shape.lengths)])})"


def _fixed(kind: Any) -> str | None:
    """Return the type of lists of one length: arrays, if they are of numbers."""
    lengths, inner = [], kind
    while pyarrow().types.is_fixed_size_list(inner):
        lengths.append(inner.list_size)
        inner = storage(inner.value_type)
    if is_list(inner):
        return _sequence(storage(kind.value_type))
    return _array(kind, Shape(tuple(lengths))) or _sequence(storage(kind.value_type))


def _sequence(inner: Any) -> str | None:
    """Return the type of lists of values of a type."""
    pa = pyarrow()
    number = plain(inner, text=False)
    if number is None:
        return None
    if pa.types.is_null(inner) or pa.types.is_struct(inner) or pa.types.is_map(inner):
        return "tree[]"
    if pa.types.is_fixed_size_list(inner):
        found = _fixed(inner)
        return f"{found}[]" if found and found.startswith("array(") else "tree[]"
    if is_list(inner):
        is_flat = pa.types.is_primitive(number.value_type)
        return "array[]" if is_flat else "tree[]"
    found = type_of(inner)
    return None if found is None else f"{found}[]"
