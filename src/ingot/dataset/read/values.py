"""Values as users get them: decoded, stacked to columns, and cut into rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.codecs.array import FixedArray
from ingot.dataset.spec import Field
from ingot.errors import FormatError

_DIMENSIONS_MAX = 64
_LENGTH_MAX = 1 << 48


def decode(field: Field, stored: bytes | list[bytes], path: str, number: int) -> Any:
    """Decode the stored value of a field.

    Raises:
        FormatError: Its codec cannot decode it.
    """
    try:
        return decoder(field)(stored)
    except (ValueError, OSError) as error:
        raise undecodable(field, path, number, error) from error


def decoder(field: Field) -> Callable[[Any], Any]:
    """Return the function that decodes the stored value of a field in one row."""
    if field.kind == "sequence":
        return field.codec.decode_list
    if field.is_sequence:
        return lambda stored: np.frombuffer(bytearray(stored), field.codec.dtype)
    return field.codec.decode


def undecodable(field: Field, path: str, number: int, error: Exception) -> FormatError:
    """Return the error for a value that its codec cannot decode."""
    message = f"{path}: row {number}: field {field.name!r} is not valid {field.type}: {error}"
    return FormatError(message, path)


def picked(values: Any, picks: Sequence[tuple[int | None, ...]] | None) -> Any:
    """Return the picked numbers of each run."""
    if picks is None:
        return values
    each = zip(values, picks, strict=True)
    return stacked([value if value is None else value[slice(*one)] for value, one in each])


def stacked(values: Any) -> Any:
    """Stack arrays of the same dtype and shape; return anything else unchanged."""
    first = values[0] if isinstance(values, list) and values else None
    if not isinstance(first, np.ndarray) or first.ndim == _DIMENSIONS_MAX:
        return values
    if max(first.shape, default=0) > _LENGTH_MAX:
        return values
    alike = (
        isinstance(one, np.ndarray) and one.shape == first.shape and one.dtype == first.dtype
        for one in values
    )
    return np.stack(values) if all(alike) else values


def rows_of(
    batch: Mapping[str, Any], fields: Mapping[str, Field], count: int, *, copy: bool
) -> list[dict[str, Any]]:
    """Cut a batch of columns into rows.

    Args:
        batch: The columns, as `Selection.read` returns them.
        fields: The fields.
        count: The number of rows.
        copy: Whether to copy arrays, or return views on the memory of the batch.
    """
    if not batch:
        return [{} for _ in range(count)]
    each = [_each(fields[name], values, copy=copy) for name, values in batch.items()]
    return [dict(zip(batch, values, strict=True)) for values in zip(*each, strict=True)]


def _each(field: Field, values: Any, *, copy: bool) -> list[Any]:
    """Return the value of each row, with the type that it has in a single row."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if field.codec.own.dtype is None and field.kind == "cell":
            return [np.array(one) for one in values]  # Arrays without dimensions, stacked.
        return list(values) if isinstance(field.codec, FixedArray) else values.tolist()
    each = [_own(one) for one in values] if copy else list(values)
    is_stacked = isinstance(values, np.ndarray) and field.kind == "sequence"
    return [list(one) for one in each] if is_stacked else each


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) and value.base is not None else value


def back(places: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the order that puts concatenated values back to their positions."""
    return np.argsort(np.concatenate(places), kind="stable")


def merged(
    found: Sequence[dict[str, Any]], order: npt.NDArray[np.int64], fields: Mapping[str, Field]
) -> dict[str, Any]:
    """Merge the columns of several reads in the given order; stack what is alike."""
    return {
        name: _column([one[name] for one in found], order, field) for name, field in fields.items()
    }


def _column(found: Sequence[Any], order: npt.NDArray[np.int64], field: Field) -> Any:
    alike = {(one.shape[1:], one.dtype) if isinstance(one, np.ndarray) else None for one in found}
    if len(alike) == 1 and None not in alike:
        return np.concatenate(found)[order]
    values = [value for one in found for value in _rows(one, field)]
    return [values[k] for k in order.tolist()]


def _rows(values: Any, field: Field) -> Any:
    """Return the value of each row, as it would be among others that are not alike."""
    is_stacked = isinstance(values, np.ndarray) and field.kind == "sequence"
    return map(list, values) if is_stacked else values
