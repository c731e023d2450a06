"""Batches of samples: stacked where values are alike, padded where they are packs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.values import stacked

Packs: TypeAlias = Sequence[Sequence[Mapping[str, Any]]]

_NUMBERS = "biufcmM"
_OWN = ("segment_ids", "positions")


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
            raise ValueError(
                f"the samples of a batch have different fields, {sorted(map(str, first))} and "
                f"{found}: map them to the same fields, select() these, or pass collate="
            )
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


def collate_packs(
    packs: Packs,
    fields: str | Sequence[str],
    length: int,
    pad: float | Mapping[str, float] = 0,
) -> dict[str, npt.NDArray[Any]]:
    """Return a batch of packs as padded arrays, with segments and positions.

    The sequences of a pack are put side by side. Fields that are not named are left out.

    Args:
        packs: Lists of rows, as `Order.pack` makes them.
        fields: The sequences; in each row, all of them have the same number of elements.
        length: The length of a pack: the `max_length` of `Order.pack`.
        pad: What fills the rest of a pack; a dict has a value for each field, and 0 for others.

    Returns:
        An array of shape `(len(packs), length, ...)` for each field; `segment_ids`, which are 1
        for the first sequence of a pack that is not empty, 2 for the second, and 0 where there is
        none;
        `positions`, which count from 0 in each sequence, or in each piece of one that was cut.

    Raises:
        TypeError: The samples are not packs of rows.
        ValueError: A pack is longer than `length`, or the sequences of a row differ in length.

    Example:
        >>> rows = [{"tokens": np.array([5, 6, 7])}, {"tokens": np.array([8])}]
        >>> batch = collate_packs([rows, rows[:1]], "tokens", length=5)
        >>> batch["tokens"].tolist()
        [[5, 6, 7, 8, 0], [5, 6, 7, 0, 0]]
        >>> batch["segment_ids"].tolist()
        [[1, 1, 1, 2, 0], [1, 1, 1, 0, 0]]
    """
    names = (fields,) if isinstance(fields, str) else tuple(fields)
    rows = _rows_of(packs, names)
    lengths = np.fromiter((len(row[names[0]]) for row in rows), np.int64, len(rows))
    counts = np.fromiter(map(len, packs), np.int64, len(packs))
    pack = np.repeat(np.arange(len(packs)), counts)
    starts = np.cumsum(lengths) - lengths
    totals = np.bincount(pack, lengths, len(packs)).astype(np.int64)
    if totals.max(initial=0) > length:
        raise ValueError(f"a pack has {totals.max()} elements: expected at most length={length}")
    # Where each element goes, if packs follow each other.
    shift = np.arange(len(packs)) * length - (np.cumsum(totals) - totals)
    places = np.arange(lengths.sum()) + np.repeat(shift[pack], lengths)
    first = np.cumsum(counts) - counts
    is_any: npt.NDArray[np.bool_] = lengths > 0
    before: npt.NDArray[np.int64] = np.cumsum(is_any) - is_any
    segments = before - before[first[pack]] + 1
    shape = (len(packs), length)

    def spread(values: npt.NDArray[Any], rest: float) -> npt.NDArray[Any]:
        found = np.full((shape[0] * shape[1], *values.shape[1:]), rest, values.dtype)
        found[places] = values
        return found.reshape(*shape, *values.shape[1:])

    batch = {}
    for name in names:
        values = [np.asarray(row[name]) for row in rows]
        _check_lengths(name, values, lengths)
        rest = pad.get(name, 0) if isinstance(pad, Mapping) else pad
        batch[name] = spread(np.concatenate(values) if values else np.empty(0), rest)
    batch["segment_ids"] = spread(np.repeat(segments, lengths).astype(np.int32), 0)
    within = np.arange(lengths.sum()) - np.repeat(starts, lengths)
    batch["positions"] = spread(within.astype(np.int32), 0)
    return batch


def _rows_of(packs: Packs, names: Sequence[str]) -> list[Mapping[str, Any]]:
    if not names or any(name in _OWN for name in names):
        message = f"expected the names of sequences, other than {' and '.join(_OWN)}: {names}"
        raise ValueError(message)
    if not all(isinstance(pack, Sequence) for pack in packs):
        raise TypeError(f"expected packs, which are lists of rows, got {type(packs[0]).__name__}")
    rows = list(chain.from_iterable(packs))
    for row in rows:
        if not isinstance(row, Mapping) or any(name not in row for name in names):
            found = list(row) if isinstance(row, Mapping) else type(row).__name__
            raise TypeError(f"expected rows with the fields {list(names)}, got {found}")
    return rows


def _check_lengths(
    name: str, values: Sequence[npt.NDArray[Any]], lengths: npt.NDArray[np.int64]
) -> None:
    for value, length in zip(values, lengths.tolist(), strict=True):
        if len(value) != length:
            raise ValueError(
                f"field {name!r} has {len(value)} elements in a row in which another one has "
                f"{length}: pass the fields that belong together, and fields=[...] to pack"
            )
