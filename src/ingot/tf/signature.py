"""Which tensors the batches of a loader are: from the types of fields, or from an example."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from ingot.dataset.nested import at, deep
from ingot.dataset.spec import Field
from ingot.loader import Loader
from ingot.loader.frameworks import each_leaf
from ingot.order.order import node_of
from ingot.order.samples import Columns

Value: TypeAlias = tuple[tf.DType, tuple[int | None, ...]]
"""The dtype and the shape of one value."""

_TEXTS = {"bytes", "utf8"}
_PICTURES = {"jpg", "mp4", "png", "webp"}


def signature_of(loader: Loader) -> Any:
    """Return the signature of a loader's batches.

    Raises:
        TypeError: A value is not a tensor, or its dtype is unknown.
    """
    node = node_of(loader.order)
    if loader.collate is None and not node.maps and Columns.of(node) is not None:
        fields = loader.order.sources[0].spec.fields  # type: ignore[attr-defined]
        has_all = all(_is_known(field) for field in fields.values())
        first = None if has_all else loader.batch(loader.step)
        return _of_fields(fields, first, _size_of(loader))
    first = loader.batch(loader.step)
    num_samples, size = _num_samples(loader), _size_of(loader)
    return each_leaf(first, lambda leaf, where: _of_leaf(leaf, num_samples, size, where))


def _num_samples(loader: Loader) -> int:
    """Return the number of samples of the next batch on this rank."""
    steps = loader._place.steps  # noqa: SLF001 -- the same library
    start, stop = steps.share(loader.step, loader.rank, loader.world)
    return stop - start


def _size_of(loader: Loader) -> int | None:
    """Return the number of samples of every batch on this rank; None if the last one differs."""
    steps = loader._place.steps  # noqa: SLF001 -- the same library
    return loader.batch_size if steps.is_even else None


def _is_known(field: Field) -> bool:
    """Whether dtype and shape follow from the type of a field."""
    return field.codec.dtype is not None or field.codec.name in _TEXTS


def _of_fields(fields: Mapping[str, Field], batch: Any, size: int | None) -> dict[str, Any]:
    specs: dict[str, tf.TypeSpec] = {}
    for name, field in fields.items():
        dtype, shape = _value_of(field, None if _is_known(field) else at(batch, name))
        if field.is_sequence:
            specs[name] = _ragged(dtype, (size, None, *shape))
        else:
            specs[name] = tf.TensorSpec((size, *shape), dtype)
        if field.is_optional:
            specs[f"{name}?"] = tf.TensorSpec((size,), tf.bool)
    return deep(specs)


def _value_of(field: Field, values: Any) -> Value:
    """Return dtype and shape of one value, or of one element of a sequence."""
    if field.codec.dtype is not None:
        return tf.as_dtype(field.codec.dtype), field.codec.shape
    if field.codec.name in _TEXTS:
        return tf.string, ()
    example = next(_arrays(values, 1 + field.is_sequence), None)
    if example is None or example.dtype.kind not in "biufc":
        raise TypeError(
            f"field {field.name!r} is {field.type}, and the first batch has no array to learn its "
            "tensors from: leave it out with select(), map it to an array, or pass signature="
        )
    known = example.shape[-1:] if field.codec.name in _PICTURES and example.ndim > 2 else ()  # noqa: PLR2004 -- channels
    return tf.as_dtype(example.dtype), (*[None] * (example.ndim - len(known)), *known)


def _arrays(values: Any, depth: int) -> Iterator[npt.NDArray[Any]]:
    """Yield the arrays of a column, which may be stacked or in lists of some depth."""
    if isinstance(values, np.ndarray):
        yield values[(0,) * depth] if depth else values
    elif depth and isinstance(values, list):
        for one in values:
            yield from _arrays(one, depth - 1)


def _of_leaf(value: Any, num_samples: int, size: int | None, where: str) -> Any:
    if isinstance(value, list):
        return _of_list(value, size if len(value) == num_samples else len(value), where)
    array = np.asarray(value)
    first = array.shape[:1]
    shape = (size, *array.shape[1:]) if first == (num_samples,) else array.shape
    return tf.TensorSpec(shape, _dtype_of(array, where))


def _of_list(values: list[Any], size: int | None, where: str) -> Any:
    if all(isinstance(one, str | bytes) for one in values):
        return tf.TensorSpec((size,), tf.string)
    if all(isinstance(one, bool | int | float | complex | np.generic) for one in values):
        return tf.TensorSpec((size,), _dtype_of(np.asarray(values), where))
    arrays = [np.asarray(one) for one in values if isinstance(one, list | np.ndarray)]
    filled = [one for one in arrays if len(one)] if all(one.ndim for one in arrays) else []
    kinds = {(_dtype_of(one, where), one.shape[1:]) for one in filled}
    if len(arrays) != len(values) or len(kinds) != 1:
        message = f"{where} is a list of values that do not make a tensor: map it, or select()"
        raise TypeError(message)
    ((dtype, shape),) = kinds
    return _ragged(dtype, (size, None, *shape))


def _ragged(dtype: tf.DType, shape: tuple[int | None, ...]) -> tf.TypeSpec:
    return tf.RaggedTensorSpec(shape, dtype, ragged_rank=1)


def _dtype_of(array: npt.NDArray[Any], where: str) -> tf.DType:
    if array.dtype.kind in "US":
        return tf.string
    if array.dtype.kind not in "biufc" and array.dtype.type.__module__ != "ml_dtypes":
        message = f"{where} has values of type {array.dtype}, which tensors do not have: map it"
        raise TypeError(message)
    return tf.as_dtype(array.dtype)
