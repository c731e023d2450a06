"""Writing rows of a generator as a data set, and the types of fields from its values."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from ingot.codecs import codec_of
from ingot.codecs.array import stored_dtype
from ingot.dataset.nested import DOT
from ingot.dataset.read.dataset import Dataset
from ingot.dataset.spec import SpecLike
from ingot.dataset.write.writer import DatasetWriter
from ingot.interchange.intake import opened

_ROWS = 1000
_BYTES = 64 << 20


def from_generator(
    rows: Callable[[], Iterable[Mapping[str, Any]]] | Iterable[Mapping[str, Any]],
    path: str | os.PathLike[str],
    *,
    spec: SpecLike | None = None,
    **options: Any,
) -> Dataset:
    """Write rows as a data set, and open it.

    Rows are taken one after another and never all in memory. Without `spec`, the first 1000 rows,
    or 64 MB of them, decide about names and types: a field that one of them lacks is optional, an
    array that always has the same shape is `array(TYPE,...)`. If anything fails, no data set is
    left behind, unless `atomic=False` is given.

    Args:
        rows: A function that returns rows, such as a generator function, or the rows. A row is a
            dict.
        path: A directory, or a file that ends in `.ingot`.
        spec: The fields, as for `DatasetWriter`.
        options: Options of `DatasetWriter`.

    Raises:
        TypeError: A value has no type here, or not that of its field.
        ValueError: There are no rows and no spec, or a value does not fit.

    Example:
        >>> ingot.from_generator(lambda: ({"x": k} for k in range(9)), "nine")  # doctest: +SKIP
    """
    stream = iter(rows() if callable(rows) else rows)
    if spec is not None:
        return _written(stream, path, spec, options)
    first: list[Mapping[str, Any]] = []
    nbytes = 0
    for row in islice(stream, _ROWS):
        first.append(row)
        nbytes += _size(row)
        if nbytes >= _BYTES:
            break
    found = spec_of(first)
    try:
        return _written(chain(first, stream), path, found, options)
    except (TypeError, ValueError) as error:
        error.add_note(f"the first {len(first)} rows gave {found}; pass spec= if others differ")
        raise


def _written(
    rows: Iterable[Mapping[str, Any]],
    path: str | os.PathLike[str],
    spec: SpecLike,
    options: Mapping[str, Any],
) -> Dataset:
    with DatasetWriter(path, spec, **{"atomic": True, **options}) as writer:
        writer.extend(rows)
    return opened(writer.path)


def _size(value: Any) -> int:
    """Return about how many bytes a value takes."""
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    if isinstance(value, bytes | str):
        return len(value)
    return int(getattr(value, "nbytes", 8))


def spec_of(rows: Sequence[Any]) -> dict[str, str]:
    """Return the fields of rows.

    Raises:
        TypeError: A row is not a dict, or a value has no type.
        ValueError: There are no rows, or only empty ones.
    """
    columns: dict[str, list[Any]] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            message = f"row {number}: a row must be a dict, got {type(row).__name__}"
            raise TypeError(message)
        for name, value in _flat(row, ""):
            columns.setdefault(name, []).append(value)
    if not columns:
        message = "there is nothing to infer the fields from; pass spec="
        raise ValueError(message)
    return {name: _type(name, values, len(rows)) for name, values in columns.items()}


def _flat(row: Mapping[str, Any], above: str) -> Iterable[tuple[str, Any]]:
    for key, value in row.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{name}{DOT}")
        else:
            yield name, value


def _type(name: str, values: list[Any], rows: int) -> str:
    there = [value for value in values if value is not None]
    optional = "?" if len(there) < rows else ""
    if not there:
        message = f"field {name!r} has no value in the first {rows} rows; pass spec="
        raise TypeError(message)
    if all(isinstance(one, list | tuple) for one in there):
        elements = [element for one in there for element in one]
        inner = _single(elements) if elements else None
        if inner not in {None, "tree"} and None not in elements:
            return f"{inner}[]{optional}"
        return f"{_tree(name, there)}{optional}"
    found = _single(there)
    return f"{_tree(name, there) if found in {None, 'tree'} else found}{optional}"


def _single(values: list[Any]) -> str | None:
    """Return the type of values that are not lists; None if they have none together."""
    kinds = {_kind(value) for value in values}
    if kinds == {"int", "float"}:
        return "float"
    if len(kinds) > 1:
        is_array = all(isinstance(one, np.ndarray) for one in values)
        return "array" if is_array and None not in kinds else None
    return kinds.pop()


def _kind(value: Any) -> str | None:  # noqa: PLR0911
    match value:
        case bool() | np.bool_():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "utf8"
        case bytes() | bytearray():
            return "bytes"
        case np.ndarray() | np.generic():
            return _array(value)
    if type(value).__module__.startswith("PIL."):
        return "png"
    return None


def _array(value: np.ndarray[Any, Any] | np.generic) -> str | None:
    try:
        dtype = stored_dtype(value.dtype)
    except TypeError:
        return None
    if dtype == np.int64 and value.ndim == 0:
        return "int"
    if dtype == np.float64 and value.ndim == 0:
        return "float"
    return f"array({','.join([dtype.name, *map(str, value.shape)])})"


def _tree(name: str, values: list[Any]) -> str:
    """Return the type of nested values.

    Raises:
        TypeError: They cannot be stored.
    """
    codec = codec_of("tree")
    for value in values:
        try:
            codec.encode(value)
        except TypeError as error:
            message = f"field {name!r}: no type fits {type(value).__name__}: {error}; pass spec="
            raise TypeError(message) from error
    return "tree"
