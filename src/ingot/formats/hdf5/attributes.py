"""Attributes of an HDF5 file as JSON-able values."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ingot.formats.hdf5.handle import h5py

SHAPE = "ingot.shape"
"""The shape that flat values of a column have, -1 for the length that varies."""

UNFINISHED = "ingot.unfinished"
"""Is there while a file is being written."""

_OWN = "ingot."


def metadata_of(file: Any, root: Any, paths: Iterable[str]) -> dict[str, Any]:
    """Return attributes: those of the root by their names, those of others as `path@name`.

    Others are the data sets at `paths`, and the groups that these are in.
    """
    found = _plain(root)
    steps = {path[:end] for path in paths for end in _ends(path)}
    for path in sorted(steps):
        one = file[path]
        if one != root:
            found |= {f"{path}@{key}": value for key, value in _plain(one).items()}
    return found


def _ends(path: str) -> list[int]:
    """Return where each part of a path ends."""
    return [*(k for k, letter in enumerate(path) if letter == "/"), len(path)]


def _plain(one: Any) -> dict[str, Any]:
    found = {}
    for name in one.attrs:
        if isinstance(name, str) and not name.startswith(_OWN):
            value, is_plain = _value(_read(one, name))
            if is_plain:
                found[_text(name)] = value
    return found


def _read(one: Any, name: str) -> Any:
    """Return an attribute; an object if it is of a type that numpy lacks."""
    try:
        return one.attrs[name]
    except (TypeError, ValueError):
        return object()


def _text(value: str) -> str:
    """Return text with what is no Unicode in it spelled out."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


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
    if isinstance(value, str):
        return _text(value), True
    if isinstance(value, float) and not math.isfinite(value):
        return str(value), True  # JSON has no such numbers.
    return value, isinstance(value, int | float | bool)
