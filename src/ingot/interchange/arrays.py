"""Arrays of pyarrow: of nested values, and of types that stored bytes do not have."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ingot.formats.arrow.file import pyarrow

_SINGLES = {bool, int, float, str, bytes}
_TYPE = "the value does not have the type of {}, {}"
_ADVICE = "select the other fields, or store it as json"


def plain_array(values: Sequence[Any], kind: Any, whose: str) -> Any:
    """Return values as an array of the plain form of a type, in which `restored` takes them.

    Args:
        values: Nested values, as the codec of their field returns them; None for null.
        kind: The type of pyarrow that they should have.
        whose: What has the type, for errors, such as "the first batch".

    Raises:
        ValueError: An array of the type would not have the values; the row is the second argument.
    """
    plain = _plain(kind)
    listed = [*map(_listed, values)]
    try:
        array, made = _made(listed, plain)
    except _errors() as error:
        row = next((row for row, one in enumerate(listed) if not _is_possible(one, plain)), 0)
        message = f"{_TYPE.format(whose, kind)}: {error}; {_ADVICE}"
        raise ValueError(message, row) from error
    for row, (value, one) in enumerate(zip(listed, made, strict=True)):
        if not _is_same(value, one):
            message = f"{_TYPE.format(whose, kind)}; {_ADVICE}"
            raise ValueError(message, row)
    return array


def inferred(values: Sequence[Any]) -> Any:
    """Return the type that pyarrow gives nested values.

    Raises:
        ValueError: They do not have one; the row is the second argument.
    """
    listed = [*map(_listed, values)]
    try:
        return pyarrow().array(listed).type
    except _errors() as error:
        good, bad = 0, len(listed)  # This many first rows have a type, or do not.
        while bad - good > 1:
            half = (good + bad) // 2
            try:
                pyarrow().array(listed[:half])
                good = half
            except _errors():
                bad = half
        message = f"nested values differ in type, or Arrow has none for them: {error}; {_ADVICE}"
        raise ValueError(message, good) from error


def _errors() -> tuple[type[Exception], ...]:
    """Return what pyarrow raises about values that are not of a type."""
    return pyarrow().ArrowException, ValueError, TypeError, OverflowError


def _made(values: Sequence[Any], kind: Any) -> tuple[Any, list[Any]]:
    """Return an array of values, and what it has."""
    array = pyarrow().array(values, kind)
    array.validate(full=True)
    return array, array.to_pylist()


def _is_possible(value: Any, kind: Any) -> bool:
    try:
        return _is_same(value, _made([value], kind)[1][0])
    except _errors():
        return False


def _is_same(value: Any, made: Any) -> bool:
    """Whether an array has a value: an int may be an equal float, and a missing key null."""
    if isinstance(value, dict):
        if isinstance(made, dict):
            is_known = made.keys() >= value.keys()
            return is_known and all(_is_same(value.get(key), one) for key, one in made.items())
        value = list(value.items())  # A map.
    if isinstance(value, list | tuple):
        if not isinstance(made, list | tuple) or len(value) != len(made):
            return False
        kinds = set(map(type, value))
        if len(kinds) == 1 and kinds <= _SINGLES and kinds == set(map(type, made)):
            is_equal = list(value) == list(made)
            return is_equal or (kinds == {float} and all(map(_is_same, value, made)))
        return all(map(_is_same, value, made))
    if type(value) is int and type(made) is float:
        return value == made
    return type(value) is type(made) and bool(value == made or value != value)  # noqa: PLR0124


def _listed(value: Any) -> Any:
    """Return nested values with lists in place of arrays."""
    if isinstance(value, dict):
        return {key: _listed(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_listed(one) for one in value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _plain(kind: Any) -> Any:  # noqa: PLR0911
    """Return the type of values before they are restored: times are numbers, decimals text."""
    pa = pyarrow()
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_decimal(kind) or types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_temporal(kind) and not types.is_interval(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()  # noqa: PLR2004
    if types.is_struct(kind):
        return pa.struct([(one.name, _plain(one.type)) for one in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.large_list(_plain(kind.value_type))
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type), kind.list_size)
    return kind


def restored(array: Any, kind: Any) -> Any:
    """Return values of a plain or usual type as values of another type.

    Raises:
        ValueError: A value cannot have the type.
    """
    try:
        return _restored(array, kind)
    except (NotImplementedError, TypeError, OverflowError) as error:
        message = f"pyarrow cannot make {kind} of the values: {error}; {_ADVICE}"
        raise ValueError(message) from error


def _restored(array: Any, kind: Any) -> Any:  # noqa: PLR0911
    pa = pyarrow()
    types = pa.types
    if array.type == kind:
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(_restored(array, kind.storage_type))
    if types.is_dictionary(kind):
        return _encoded(array, kind)
    if types.is_struct(kind):
        pairs = zip(array.flatten(), kind, strict=True)
        parts = [_restored(part, one.type) for part, one in pairs]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=_mask(array))
    if types.is_list(kind) or types.is_large_list(kind):
        return _relisted(array, kind)
    if types.is_fixed_size_list(kind):
        return _fixed(array, kind)
    return array.cast(kind)


def _mask(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _encoded(array: Any, kind: Any) -> Any:
    """Return values with a dictionary of them.

    Raises:
        ValueError: There are more of them than the type of its positions can count.
    """
    pa = pyarrow()
    encoded = array.dictionary_encode()
    values = _restored(encoded.dictionary, kind.value_type)
    try:
        indices = encoded.indices.cast(kind.index_type)
    except pa.ArrowInvalid as error:
        message = (
            f"{len(values)} different values are more than {kind} can have; read fewer rows at "
            "a time with arrow_batches(rows=...)"
        )
        raise ValueError(message) from error
    return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)


def _relisted(array: Any, kind: Any) -> Any:
    """Return lists as lists whose elements are restored."""
    pa = pyarrow()
    ends = array.offsets.to_numpy().astype(np.int64)
    values = _restored(array.values[int(ends[0]) : int(ends[-1])], kind.value_type)
    is_large = pa.types.is_large_list(kind)
    offsets = pa.array(ends - ends[0], pa.int64() if is_large else pa.int32())
    made = pa.LargeListArray if is_large else pa.ListArray
    return made.from_arrays(offsets, values, type=kind, mask=_mask(array))


def _fixed(array: Any, kind: Any) -> Any:
    """Return lists as lists of one length; those that are null have nulls in them.

    Raises:
        ValueError: A list has another length; the row is the second argument.
    """
    pa = pyarrow()
    size, count = kind.list_size, len(array)
    missing = array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_fixed_size_list(array.type):
        starts = (array.offset + np.arange(count)) * size
    else:
        ends = array.offsets.to_numpy().astype(np.int64)
        starts = ends[:-1]
        other = np.flatnonzero(~missing & (np.diff(ends) != size))
        if len(other):
            row = int(other[0])
            message = f"a list of {ends[row + 1] - ends[row]} values is not {kind}; {_ADVICE}"
            raise ValueError(message, row)
    if not size:
        return pa.array([None if gone else [] for gone in missing], kind)
    places = (starts[:, None] + np.arange(size)).ravel()
    indices = pa.array(places, mask=np.repeat(missing, size))
    values = _restored(array.values.take(indices), kind.value_type)
    return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=_mask(array))
