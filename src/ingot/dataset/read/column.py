"""The values of one field in all rows, as one array."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.iteration import blocks
from ingot.dataset.read.selection import Selection
from ingot.dataset.spec import Field

TREES = ("json", "msgpack", "tree")
"""The types whose values may be dicts."""


def column_of(selection: Selection, field: Field) -> npt.NDArray[Any]:
    """Return the values of a field of the selection in all its rows.

    Raises:
        TypeError: They cannot be stored in one array.
    """
    if field.codec.name == "utf8" and not field.is_sequence:
        return _texts(selection, field)
    is_array = field.codec.dtype is not None and field.codec.shape != ()
    if is_array and not field.is_sequence and not field.is_optional:
        return _arrays(selection, field)
    if field.codec.name in TREES and not field.is_sequence:
        message = (
            f"{selection.path}: field {field.name!r} is {field.type}, expected numbers, text or "
            f"arrays; column('{field.name}.KEY') returns a member of its dicts"
        )
        raise TypeError(message)
    return selection.source.column(field.name, selection.rows)


def _texts(selection: Selection, field: Field) -> npt.NDArray[Any]:
    dtype = np.dtypes.StringDType(na_object=None) if field.is_optional else np.dtypes.StringDType()
    found = np.empty(len(selection), dtype)
    nbytes = 0
    for places, values in values_of(selection, field):
        nbytes += sum(len(one) for one in values if one is not None)
        selection.source.check_size(nbytes)
        found[places.start : places.stop] = np.array(values, dtype)
    return found


def _arrays(selection: Selection, field: Field) -> npt.NDArray[Any]:
    dtype = np.dtype(field.codec.dtype)
    selection.source.check_size(len(selection) * math.prod(field.codec.shape) * dtype.itemsize)
    found = np.empty((len(selection), *field.codec.shape), dtype)
    for places, values in values_of(selection, field):
        found[places.start : places.stop] = values
    return found


def values_of(selection: Selection, field: Field) -> Iterator[tuple[range, Any]]:
    """Yield the values of consecutive rows, a block at a time."""
    start = 0
    for numbers, found in blocks(selection, [field.name]):
        places = range(start, start + len(numbers))
        start = places.stop
        if found is not None:
            yield places, found[field.name]
            continue
        wanted = {field.name: None}
        for place in places:  # Row by row, so that the error names the damaged row.
            one = range(place, place + 1)
            yield one, selection.read(selection.numbers(one), wanted)[field.name]
