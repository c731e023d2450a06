"""Batches of samples: stacked arrays where values are alike, lists otherwise."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ingot.dataset.read.values import stacked

_NUMBERS = "biufcmM"


def collate(samples: list[Any]) -> Any:
    """Return a batch of samples.

    Dicts become a dict of batches, tuples a tuple of batches. Arrays and tensors of one shape
    are stacked, numbers become an array. Anything else, such as text and arrays with a mask, stays
    a list.

    Raises:
        ValueError: Dicts have different keys.
    """
    match samples[0]:
        case Mapping():
            return _dict(samples)
        case tuple():
            return _tuple(samples)
        case np.ndarray():
            return _arrays(samples)
        case bool() | int() | float() | complex() | np.generic():
            return _numbers(samples)
    if hasattr(samples[0], "__torch_function__"):
        return _tensors(samples)
    return _jax_arrays(samples) if hasattr(samples[0], "addressable_shards") else samples


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


def _arrays(samples: list[Any]) -> Any:
    """Stack arrays of any subclass as plain ones; those with a mask stay as they are."""
    if any(isinstance(one, np.ma.MaskedArray) for one in samples):
        return samples
    return stacked([np.asarray(one) if isinstance(one, np.ndarray) else one for one in samples])


def _numbers(samples: list[Any]) -> Any:
    if not all(isinstance(one, bool | int | float | complex | np.generic) for one in samples):
        return samples
    found = np.asarray(samples)
    is_rounded = found.dtype.kind == "f" and all(isinstance(one, int) for one in samples)
    return samples if is_rounded or found.dtype.kind not in _NUMBERS else found


def _jax_arrays(samples: list[Any]) -> Any:
    import jax  # noqa: PLC0415 -- the samples are of its types

    return jax.numpy.stack(samples) if all(_alike(samples, jax.Array)) else samples


def _alike(samples: list[Any], kind: Any) -> Iterator[bool]:
    first = samples[0]
    return (
        isinstance(one, kind) and one.shape == first.shape and one.dtype == first.dtype
        for one in samples
    )


def _tensors(samples: list[Any]) -> Any:
    import torch  # noqa: PLC0415 -- the samples are of its types

    alike = _alike(samples, torch.Tensor)
    return torch.stack(samples) if all(alike) else samples
