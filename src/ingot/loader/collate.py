"""Batches of samples: stacked arrays where values are alike, lists otherwise."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ingot.dataset.read.stacking import stacked

_NUMBERS = "biufcmM"


def collate(samples: list[Any]) -> Any:
    """Return a batch of samples.

    Dicts become a dict of batches, tuples a tuple of batches. Arrays and tensors of one shape
    are stacked, numbers become an array. Anything else, such as text, stays a list.

    Raises:
        ValueError: Dicts have different keys.
    """
    match samples[0]:
        case Mapping():
            return _dict(samples)
        case tuple():
            return _tuple(samples)
        case np.ndarray():
            return stacked(samples)
        case bool() | int() | float() | complex() | np.generic():
            return _numbers(samples)
    return _tensors(samples) if hasattr(samples[0], "__torch_function__") else samples


def _dict(samples: list[Any]) -> Any:
    first = samples[0]
    for one in samples:
        if not isinstance(one, Mapping) or one.keys() != first.keys():
            found = sorted(map(str, one)) if isinstance(one, Mapping) else type(one).__name__
            message = (
                f"the samples of a batch have different fields, {sorted(map(str, first))} and "
                f"{found}: map them to the same fields, select() these, or pass collate="
            )
            raise ValueError(message)
    return {key: collate([one[key] for one in samples]) for key in first}


def _tuple(samples: list[Any]) -> Any:
    first = samples[0]
    if not all(type(one) is type(first) and len(one) == len(first) for one in samples):
        return samples
    columns = [collate(list(column)) for column in zip(*samples, strict=True)]
    return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)


def _numbers(samples: list[Any]) -> Any:
    if not all(isinstance(one, bool | int | float | complex | np.generic) for one in samples):
        return samples
    found = np.asarray(samples)
    is_rounded = found.dtype.kind == "f" and all(isinstance(one, int) for one in samples)
    return samples if is_rounded or found.dtype.kind not in _NUMBERS else found


def _tensors(samples: list[Any]) -> Any:
    import torch  # noqa: PLC0415 -- the samples are of its types

    first = samples[0]
    if not isinstance(first, torch.Tensor):
        return samples
    alike = (
        isinstance(one, torch.Tensor) and one.shape == first.shape and one.dtype == first.dtype
        for one in samples
    )
    return torch.stack(samples) if all(alike) else samples


def each_array(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Return a batch with each array and each other leaf changed by a function."""
    if isinstance(batch, Mapping):
        return {key: each_array(one, change) for key, one in batch.items()}
    if isinstance(batch, tuple):
        changed = [each_array(one, change) for one in batch]
        return type(batch)(*changed) if hasattr(batch, "_fields") else tuple(changed)
    if isinstance(batch, list):
        return [each_array(one, change) for one in batch]
    return change(batch)


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
    if hasattr(one, "__array__"):
        left, right = np.asarray(one), np.asarray(other)
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return left.dtype.hasobject or left.tobytes() == right.tobytes()
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 -- not a number
