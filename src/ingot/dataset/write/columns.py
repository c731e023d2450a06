"""Encodes rows that are given as columns, or as a list."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.codecs.codec import cells_of, encode_all, has_own_many, joined, offsets_of
from ingot.codecs.signature import is_file_type
from ingot.dataset.read.plan import read
from ingot.dataset.read.source import Numbers, Source, Stored
from ingot.dataset.spec import Field, Spec
from ingot.dataset.write.encoder import Encoder, check_names, elements, flat, run_of
from ingot.dataset.write.packed import Cells, PackedField, PackedRows

Column: TypeAlias = list[Any] | tuple[Any, ...] | npt.NDArray[Any]
Truths: TypeAlias = npt.NDArray[np.bool_]

_LIST_ROWS = 1024
_LIST_BYTES = 1 << 20
_LIST_ROWS_MIN = 8
_ROW_BYTES_MAX = 32 << 10
"""The size up to which copying a row next to others costs less than encoding it by itself."""


def encode(spec: Spec, first: int, batch: Mapping[str, Any], *, check: bool) -> PackedRows:
    """Encode all rows of a batch.

    Args:
        spec: The fields.
        first: The number of the first row.
        batch: A column for each field. Optional fields may be missing.
        check: Whether to decode every value once.

    Raises:
        TypeError: A value does not have the type of its field, or a column is not a list.
        ValueError: A value does not fit, columns are missing or unknown, or their lengths differ.
    """
    given = flat(spec, batch)
    check_names(spec, first, given)
    columns = {
        name: _column(spec.fields[name], column)
        for name, column in given.items()
        if column is not None
    }
    count = _length(columns)
    try:
        if not check:
            return _at_once(spec, columns, count)
    except (TypeError, ValueError):
        pass  # Encoding one by one finds the row that is refused.
    return _one_by_one(spec, first, columns, count, check=check)


def pieces(
    spec: Spec, rows: Sequence[Mapping[str, Any]]
) -> Iterator[PackedRows | Mapping[str, Any]]:
    """Yield the rows of a list: encoded, many at a time, or as they are.

    Rows that are refused, that are large, or that have a field whose codec encodes one value at
    a time are yielded as they are, for an `Encoder`.
    """
    step = _step(spec)
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        encoded = _encoded_rows(spec, some) if len(some) >= _LIST_ROWS_MIN else None
        if encoded is None:
            yield from some
        else:
            yield encoded


def _step(spec: Spec) -> int:
    """Return how many rows of a list to encode at once: 1, if more are not faster."""
    fields = spec.fields.values()
    if not all(has_own_many(type(one.codec)) for one in fields):
        return 1
    if any(one.is_sequence or one.codec.takes_none for one in fields):
        return 1
    sizes = [one.codec.dtype.itemsize * prod(one.codec.shape) for one in fields if one.codec.dtype]
    size = max(1, sum(sizes))
    return min(_LIST_ROWS, _LIST_BYTES // size) if size <= _ROW_BYTES_MAX else 1


def _encoded_rows(spec: Spec, rows: Sequence[Mapping[str, Any]]) -> PackedRows | None:
    """Encode rows; return None if one is refused, or if they are large."""
    if not {dict}.issuperset(map(type, rows)):
        return None
    given = [flat(spec, one) for one in rows] if spec.groups else rows
    if not set().union(*given) <= spec.fields.keys():
        return None
    columns = {name: [one.get(name) for one in given] for name in spec.fields}
    try:
        for name, field in spec.fields.items():
            if field.codec.dtype is None and _size(columns[name]) > _LIST_BYTES:
                return None
        return _at_once(spec, columns, len(rows))
    except (TypeError, ValueError):
        return None


def _size(values: list[Any]) -> int:
    return sum([len(one) for one in values if one is not None])


def encoded(
    source: Source, names: Sequence[str], numbers: Numbers, files: Source | None = None
) -> Sequence[Stored]:
    """Return values as an Ingot file stores them, as `Source.packed` does.

    Args:
        source: The rows.
        names: The fields.
        numbers: The row numbers.
        files: The same rows with values as bytes, if images, audio and video are stored so.
    """
    wanted = dict.fromkeys(name.removesuffix("?") for name in names)
    spec = Spec({name: source.spec.fields[name] for name in wanted}).own()
    batch = {}
    if files is not None:
        kinds = {name: one.codec.name for name, one in spec.fields.items()}
        media = [name for name, kind in kinds.items() if is_file_type(kind) or kind == "bytes"]
        batch = read(files.plan(numbers, {name: wanted.pop(name) for name in media}))
    batch |= read(source.plan(numbers, wanted))
    rows = encode(spec, int(numbers[0]) if len(numbers) else 0, batch, check=False)
    found = dict(zip((name for name, *_ in spec.stored()), rows.fields, strict=True))
    return [found[name] for name in names]


def _column(field: Field, given: Any) -> Column:
    """Return a column as a list, or as an array of anything but objects.

    Raises:
        TypeError: It is neither.
    """
    column = given
    if isinstance(given, np.ma.MaskedArray):
        column = [None if one is np.ma.masked else one for one in given]
    elif hasattr(given, "__array__"):
        array = np.asarray(given)
        if array.ndim and not array.dtype.hasobject:
            return array
        column = list(array) if array.ndim else None
    elif isinstance(given, range):
        column = list(given)
    if not isinstance(column, list | tuple):
        raise TypeError(
            f"field {field.name!r}: a column must be a list or an array of values, got "
            f"{type(given).__name__}; append takes a single row"
        )
    if field.is_sequence:
        return [list(one) if isinstance(one, Iterator) else one for one in column]
    return column


def _length(columns: Mapping[str, Column]) -> int:
    lengths = {name: len(column) for name, column in columns.items()}
    if not lengths:
        raise ValueError("a batch must have at least one column")
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of a batch must have the same length, got {lengths}")
    return next(iter(lengths.values()))


def _one_by_one(
    spec: Spec, first: int, columns: Mapping[str, Column], count: int, *, check: bool
) -> PackedRows:
    encoder = Encoder(spec, check=check)
    rows = ({name: one[k] for name, one in columns.items()} for k in range(count))
    return packed_rows(spec, [encoder.encode(first + k, row) for k, row in enumerate(rows)])


def packed_rows(spec: Spec, rows: Sequence[Sequence[Cells]]) -> PackedRows:
    """Return rows that were encoded one by one in one piece."""
    kinds = [kind for _, kind, *_ in spec.stored()]
    columns = zip(*rows, strict=True) if rows else ([] for _ in kinds)
    fields = [_field(kind, column) for kind, column in zip(kinds, columns, strict=True)]
    return PackedRows(fields, len(rows))


def _field(kind: str, column: Sequence[Cells]) -> PackedField:
    if kind != "sequence":
        return PackedField(*joined([one for one in column if isinstance(one, bytes)]))
    runs = [one for one in column if isinstance(one, list)]
    counts = np.array([len(run) for run in runs], np.uint64).tobytes()
    return PackedField(*joined([cell for run in runs for cell in run]), counts)


def _at_once(spec: Spec, columns: Mapping[str, Column], count: int) -> PackedRows:
    """Encode field by field.

    Raises:
        TypeError, ValueError: A value is refused, or missing.
    """
    values, present = [], []
    for field in spec.fields.values():
        column: Column = columns.get(field.name, ())
        there = _present(column, count) if field.name in columns else np.zeros(count, np.bool_)
        if not there.all() and not (field.takes_none and field.name in columns):
            if not field.is_optional:
                raise ValueError(f"field {field.name!r} is missing")
            packed = _encoded(field, [one for one in column if one is not None])
            values.append(_spread(field, packed, there))
        else:
            values.append(_encoded(field, column))
        if field.is_optional:
            present.append(PackedField(*cells_of(there)))
    return PackedRows(values + present, count)


def _present(column: Column, count: int) -> Truths:
    """Return which values are not None."""
    if isinstance(column, np.ndarray):
        return np.ones(count, np.bool_)
    return np.array([one is not None for one in column], np.bool_)


def _encoded(field: Field, column: Column) -> PackedField:
    if field.kind == "sequence":
        return _sequences(field, column)
    if field.is_sequence:
        return _runs(field, column)
    packed = PackedField(*encode_all(field.codec, column))
    if field.width is not None and (packed.sizes(len(column)) != field.width).any():
        raise ValueError(f"field {field.name!r}: a number has the wrong size")
    return packed


def _sequences(field: Field, column: Column) -> PackedField:
    runs = [list(elements(one)) for one in column]
    counts = np.array([len(run) for run in runs], np.uint64).tobytes()
    return PackedField(*encode_all(field.codec, [one for run in runs for one in run]), counts)


def _runs(field: Field, column: Column) -> PackedField:
    """Encode a run of numbers for each row."""
    if isinstance(column, np.ndarray) and (column.ndim, column.dtype) == (2, field.codec.dtype):
        return PackedField(*cells_of(column))
    return PackedField(*joined([run_of(field, one) for one in column]))


def _spread(field: Field, packed: PackedField, present: Truths) -> PackedField:
    """Insert placeholders for missing values between those that are present."""
    if packed.counts is not None:
        counts = np.zeros(len(present), np.uint64)
        counts[present] = np.frombuffer(packed.counts, np.uint64)
        return packed._replace(counts=counts.tobytes())
    if field.width is not None:
        numbers = np.zeros((len(present), field.width), np.uint8)
        numbers[present] = np.frombuffer(packed.data, np.uint8).reshape(-1, field.width)
        return PackedField(*cells_of(numbers))
    sizes = np.zeros(len(present), np.int64)
    sizes[present] = np.diff(np.frombuffer(packed.offsets, np.int64))
    return packed._replace(offsets=offsets_of(sizes.tolist()))
