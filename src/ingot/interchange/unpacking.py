"""Stored values as arrays of Arrow."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot._core import split_bytes
from ingot.codecs import Array, Bytes, Codec, FixedArray, Json, Msgpack, Tree, Utf8
from ingot.codecs.signature import is_file_type
from ingot.dataset.spec import Field
from ingot.dataset.write.packed import PackedField
from ingot.formats.arrow.library import pyarrow

Truths = npt.NDArray[np.bool_]


def array_of(field: Field, packed: PackedField, present: Truths | None, kind: Any) -> Any:
    """Return the stored values of a field as an array of a plain type.

    Args:
        field: The field.
        packed: Its values.
        present: Which rows have one; None if all.
        kind: The type of nested values, of type pyarrow.DataType, if it is known.

    Raises:
        TypeError: Arrow has no type for such values.
        ValueError: Nested values differ in their types.
    """
    pa = pyarrow()
    mask = None if present is None or present.all() else pa.array(~present)
    ends = np.frombuffer(packed.offsets, np.int64)
    if field.kind == "column":
        numbers = np.frombuffer(packed.data, field.codec.dtype, len(ends) - 1)
        return pa.array(numbers, mask=None if mask is None else ~present)  # type: ignore[operator]
    if packed.counts is not None:
        counts = np.frombuffer(packed.counts, np.uint64).astype(np.int64)
        inner = kind.value_type if kind is not None and hasattr(kind, "value_type") else None
        values = _cells(field.codec, packed.data, ends, None, inner)
        return _lists(np.concatenate([[0], np.cumsum(counts)]), values, mask)
    if field.is_sequence:
        dtype = np.dtype(field.codec.dtype)
        values = pa.array(np.frombuffer(packed.data, dtype, ends[-1] // dtype.itemsize))
        return _lists(ends // dtype.itemsize, values, mask)
    return _cells(field.codec, packed.data, ends, present, kind)


def _lists(ends: npt.NDArray[np.int64], values: Any, mask: Any) -> Any:
    return pyarrow().LargeListArray.from_arrays(pyarrow().array(ends), values, mask=mask)


def _cells(
    codec: Codec, data: Any, ends: npt.NDArray[np.int64], present: Truths | None, kind: Any
) -> Any:
    pa = pyarrow()
    count = len(ends) - 1
    if isinstance(codec, FixedArray):
        return _fixed(codec, data, present, count)
    if isinstance(codec, Array | Tree | Msgpack):
        each = split_bytes(memoryview(data), ends.tobytes())
        there = [True] * count if present is None else present.tolist()
        values = [codec.decode(one) if has else None for one, has in zip(each, there, strict=True)]
        return _ragged(values) if isinstance(codec, Array) else _nested(values, kind)
    if not isinstance(codec, Bytes | Utf8 | Json) and not is_file_type(codec.name):
        message = f"Arrow has no type for {codec.name}; leave the field out with names="
        raise TypeError(message)
    validity = None
    if present is not None and not present.all():
        validity = pa.array(present).buffers()[1]
    buffers = [validity, pa.py_buffer(ends.tobytes()), pa.py_buffer(bytes(data))]
    found = pa.Array.from_buffers(pa.large_binary(), count, buffers)
    return found.cast(pa.large_string()) if isinstance(codec, Utf8 | Json) else found


def _fixed(codec: FixedArray, data: Any, present: Truths | None, count: int) -> Any:
    """Return arrays of one shape as lists of lists of one length."""
    pa = pyarrow()
    size = math.prod(codec.shape)
    numbers = np.frombuffer(data, codec.dtype)
    mask = None
    if present is not None and not present.all():
        wide = np.zeros((count, size), codec.dtype)
        wide[present] = numbers.reshape(-1, size)
        numbers, mask = wide.reshape(-1), pa.array(~present)
    found = pa.array(numbers[: count * size])
    for k in range(len(codec.shape) - 1, 0, -1):
        found = pa.FixedSizeListArray.from_arrays(found, codec.shape[k])
    return pa.FixedSizeListArray.from_arrays(found, codec.shape[0], mask=mask)


def _ragged(values: list[Any]) -> Any:
    """Return arrays, each with its own shape, as lists of lists."""
    pa = pyarrow()
    there = [one for one in values if one is not None]
    kinds = {(one.dtype, one.ndim) for one in there}
    if len(kinds) > 1 or any(dims == 0 for _, dims in kinds):
        told = ", ".join(sorted(f"{dims} dimensions of {dtype}" for dtype, dims in kinds))
        message = f"the arrays differ in type: {told}; leave the field out with names="
        raise ValueError(message)
    if not there:
        return pa.nulls(len(values))
    found = pa.array(np.concatenate([one.reshape(-1) for one in there]))
    for axis in range(there[0].ndim - 1, 0, -1):
        lengths = [np.full(math.prod(one.shape[:axis]), one.shape[axis]) for one in there]
        found = _lists(np.concatenate([[0], np.cumsum(np.concatenate(lengths))]), found, None)
    outer = np.cumsum([0, *(0 if one is None else len(one) for one in values)])
    mask = pa.array([one is None for one in values]) if len(there) < len(values) else None
    return _lists(outer, found, mask)


def _nested(values: list[Any], kind: Any) -> Any:
    pa = pyarrow()
    try:
        return pa.array([_listed(one) for one in values], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        message = f"nested values differ in type: {error}; leave the field out with names="
        raise ValueError(message) from error


def _listed(value: Any) -> Any:
    """Return nested values with lists in place of arrays."""
    if isinstance(value, dict):
        return {key: _listed(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_listed(one) for one in value)
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
