"""Attributes of an HDF5 file as JSON-able values."""

from typing import Any

import numpy as np

from ingot.dataset.hdf5.handle import h5py

SHAPE = "ingot.shape"
"""The shape that flat values of a column have, -1 for the length that varies."""

UNFINISHED = "ingot.unfinished"
"""Is there while a file is being written."""

_OWN = "ingot."


def metadata_of(root: Any, columns: dict[str, Any]) -> dict[str, Any]:
    """Return attributes: those of the root by their names, those of a column as `column@name`."""
    found = _plain(root)
    for name, dataset in columns.items():
        if dataset != root:
            found |= {f"{name}@{key}": value for key, value in _plain(dataset).items()}
    return found


def _plain(one: Any) -> dict[str, Any]:
    found = {}
    for name in one.attrs:
        if not name.startswith(_OWN):
            value, is_plain = _value(one.attrs[name])
            if is_plain:
                found[name] = value
    return found


def _value(value: Any) -> tuple[Any, bool]:
    """Return a value as JSON has it, and whether that can be."""
    if isinstance(value, h5py().Empty):
        return None, True
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        each = [_value(one) for one in value]
        return [one for one, _ in each], all(is_plain for _, is_plain in each)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace"), True
    return value, isinstance(value, str | int | float | bool)
