"""Where two batches differ."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ingot.loader.tensors import bytes_of, is_plain_tensor


def differing(one: Any, other: Any, where: str = "batch") -> str | None:
    """Return where two batches differ, such as `batch['image']`; None if they do not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        pairs = [(f"{where}[{key!r}]", one[key], other[key]) for key in one]
    elif _is_list(one) and _is_list(other) and len(one) == len(other):
        pairs = [(f"{where}[{k}]", *pair) for k, pair in enumerate(zip(one, other, strict=True))]
    else:
        return None if _is_same(one, other) else where
    found = (differing(left, right, name) for name, left, right in pairs)
    return next(filter(None, found), None)


def _is_list(one: Any) -> bool:
    return isinstance(one, Sequence) and not isinstance(one, str | bytes | bytearray)


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if is_plain_tensor(one) and is_plain_tensor(other):
        alike = one.dtype == other.dtype and one.shape == other.shape
        return alike and bool((bytes_of(one) == bytes_of(other)).all())
    if hasattr(one, "__array__"):
        left, right = np.asarray(one), np.asarray(other)
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return left.dtype.hasobject or left.tobytes() == right.tobytes()
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 -- not a number
