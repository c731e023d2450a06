"""Batches of numpy arrays as what a signature says."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from ingot.loader.frameworks import own_copy


def tensors(batch: Any, specs: Any, where: str = "batch") -> Any:
    """Return a batch as tensors, or as arrays that TensorFlow takes as they are.

    Raises:
        ValueError: A value does not fit the signature.
    """
    if isinstance(specs, Mapping):
        return {key: _entry(batch, key, one, where) for key, one in specs.items()}
    if isinstance(specs, tuple):
        pairs = zip(_checked(batch, tuple, where), specs, strict=True)
        found = [tensors(one, spec, f"{where}[{k}]") for k, (one, spec) in enumerate(pairs)]
        return type(specs)(*found) if hasattr(specs, "_fields") else tuple(found)
    if isinstance(specs, tf.RaggedTensorSpec):
        return _ragged(batch, specs, where)
    return _dense(batch, specs, where)


def _entry(batch: Any, key: str, spec: Any, where: str) -> Any:
    """Return a field, or where an optional field is present."""
    values: Mapping[str, Any] = _checked(batch, Mapping, where)
    if key not in values and isinstance(key, str) and key.endswith("?"):
        return np.array([one is not None for one in values[key[:-1]]], np.bool_)
    if key not in values:
        message = f"{where} has no field {key!r}, which the signature names: it has {list(values)}"
        raise ValueError(message)
    return tensors(values[key], spec, f"{where}[{key!r}]")


def _checked(batch: Any, kind: Any, where: str) -> Any:
    if not isinstance(batch, kind):
        message = f"{where} is {type(batch).__name__}, and the signature has {kind.__name__}"
        raise ValueError(message)  # noqa: TRY004 -- as other values that do not fit
    return batch


def _dense(value: Any, spec: tf.TensorSpec, where: str) -> npt.NDArray[Any]:
    inner = _inner(spec.shape[1:]) if spec.shape.rank else ()
    if spec.dtype == tf.string:
        found = _texts(value)
    elif isinstance(value, list):
        found = _stacked(value, inner, spec.dtype, where)
    else:
        found = _owned(np.asarray(value), spec.dtype, where)
    return _fitting(found, spec.shape, where)


def _ragged(value: Any, spec: tf.RaggedTensorSpec, where: str) -> tf.RaggedTensor:
    if spec.ragged_rank != 1:
        raise ValueError(f"{where}: expected a signature of ragged_rank 1, got {spec.ragged_rank}")
    lengths = [0 if one is None else len(one) for one in value]
    splits = np.cumsum([0, *lengths], dtype=spec.row_splits_dtype.as_numpy_dtype)
    inner = _inner(spec.shape[2:])
    rows = [one for one, length in zip(value, lengths, strict=True) if length]
    if spec.dtype == tf.string:
        flat = _texts(list(chain.from_iterable(rows)))
    elif all(isinstance(row, np.ndarray) for row in rows):
        flat = _joined(rows, inner, spec.dtype, where)
    else:
        flat = _stacked(list(chain.from_iterable(rows)), inner, spec.dtype, where)
    _fitting(flat, tf.TensorShape([None]).concatenate(spec.shape[2:]), where)
    return tf.RaggedTensor.from_row_splits(flat, splits, validate=False)


def _inner(shape: Iterable[int | None]) -> tuple[int, ...]:
    """Return the shape of a value, with 0 for unknown dimensions."""
    return tuple(one or 0 for one in shape)


def _stacked(
    values: list[Any], inner: tuple[int, ...], dtype: tf.DType, where: str
) -> npt.NDArray[Any]:
    """Return values of one shape as an array, with zeros for those that are missing."""
    arrays = [None if one is None else np.asarray(one) for one in values]
    found = [one for one in arrays if one is not None]
    _check_alike([one.shape for one in found], where)
    if not found:
        return np.zeros((len(values), *inner), dtype.as_numpy_dtype)
    nothing = np.zeros_like(found[0])
    return _cast(np.stack([nothing if one is None else one for one in arrays]), dtype, where)


def _joined(
    rows: list[npt.NDArray[Any]], inner: tuple[int, ...], dtype: tf.DType, where: str
) -> npt.NDArray[Any]:
    _check_alike([row.shape[1:] for row in rows], where)
    if not rows:
        return np.zeros((0, *inner), dtype.as_numpy_dtype)
    return _cast(np.concatenate(rows), dtype, where)


def _check_alike(shapes: list[tuple[int, ...]], where: str) -> None:
    different = sorted(set(shapes))
    if len(different) > 1:
        raise ValueError(
            f"{where} has values of shapes {different[0]} and {different[1]}, which do not make a "
            "tensor: map them to one shape"
        )


def _cast(array: npt.NDArray[Any], dtype: tf.DType, where: str) -> npt.NDArray[Any]:
    return array.astype(_checked_dtype(array, dtype, where), copy=False)


def _owned(array: npt.NDArray[Any], dtype: tf.DType, where: str) -> npt.NDArray[Any]:
    """Return a copy: TensorFlow keeps the memory of arrays, and others may write to it."""
    return own_copy(array, _checked_dtype(array, dtype, where))


def _checked_dtype(array: npt.NDArray[Any], dtype: tf.DType, where: str) -> np.dtype[Any]:
    wanted: np.dtype[Any] = np.dtype(dtype.as_numpy_dtype)
    if array.dtype != wanted and not np.can_cast(array.dtype, wanted, "safe"):
        raise ValueError(f"{where} has dtype {array.dtype}, and the signature has {wanted}: map it")
    return wanted


def _fitting(array: npt.NDArray[Any], shape: tf.TensorShape, where: str) -> npt.NDArray[Any]:
    if not shape.is_compatible_with(array.shape):
        raise ValueError(
            f"{where} has shape {array.shape}, and the signature has {shape}: map it to one shape, "
            "or pass signature= with None for dimensions that differ"
        )
    return array


def _texts(value: Any) -> npt.NDArray[Any]:
    """Return text as UTF-8, and bytes, as an array of bytes; what is missing is empty."""
    if isinstance(value, str | bytes):
        return np.array(_encoded(value), object)
    values = value.tolist() if isinstance(value, np.ndarray) else list(value)
    found = np.empty(len(values), object)
    found[:] = [_encoded(one) for one in values]
    return found


def _encoded(text: str | bytes | None) -> bytes:
    return text.encode() if isinstance(text, str) else text or b""
