"""Weights of a mix as integers."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from numbers import Rational
from typing import Any, TypeAlias

Weights: TypeAlias = Mapping[str, float | Fraction]
Schedule: TypeAlias = Sequence[tuple[int, Weights]]

WEIGHTS_MAX = 65_536
"""Integer weights add up to at most this."""

_POSITION_MAX = (1 << 63) - 1


def schedule_of(names: Sequence[str], weights: Weights | Schedule) -> list[tuple[int, list[int]]]:
    """Return the positions from which weights apply, with integer weights in the order of names.

    Raises:
        TypeError: The weights are neither a dict nor a list of positions and dicts.
        ValueError: They do not fit the names, or are no weights.
    """
    if isinstance(weights, Mapping):
        return [(0, _integers(names, weights))]
    if not isinstance(weights, Sequence) or not all(map(_is_entry, weights)):
        message = (
            "weights are a dict of names and numbers, or a list such as "
            f"[(0, {{...}}), (1000, {{...}})], not {weights!r}"
        )
        raise TypeError(message)
    starts = [start for start, _ in weights]
    if not starts or starts[0] != 0 or any(a >= b for a, b in pairwise(starts)):
        message = f"the positions at which weights change begin with 0 and go up, got {starts}"
        raise ValueError(message)
    if starts[-1] > _POSITION_MAX:
        message = f"positions are below 2^63, got {starts[-1]}"
        raise ValueError(message)
    return [(start, _integers(names, one)) for start, one in weights]


def _is_entry(entry: Any) -> bool:
    match entry:
        case (int(), Mapping()):
            return True
    return False


def _integers(names: Sequence[str], weights: Weights) -> list[int]:
    if set(weights) != set(names):
        message = f"expected a weight for each of {list(names)}, got weights for {list(weights)}"
        raise ValueError(message)
    exact = [_fraction(name, weights[name]) for name in names]
    total = sum(exact)
    if not total:
        message = f"the weights of {list(names)} are all 0"
        raise ValueError(message)
    shares = [one / total for one in exact]
    near = [share.limit_denominator(WEIGHTS_MAX) for share in shares]
    period = math.lcm(*(one.denominator for one in near))
    if period <= WEIGHTS_MAX and sum(near) == 1 and all(map(_alike, near, shares)):
        return [int(one * period) for one in near]
    return _rounded(shares)


def _alike(near: Fraction, share: Fraction) -> bool:
    return bool(near) == bool(share)


def _rounded(shares: Sequence[Fraction]) -> list[int]:
    """Return integers that add up to `WEIGHTS_MAX`; a share is 0 only if it was."""
    counts = [max(math.floor(share * WEIGHTS_MAX), int(share > 0)) for share in shares]
    left = WEIGHTS_MAX - sum(counts)
    ranked = sorted(range(len(shares)), key=lambda k: counts[k] - shares[k] * WEIGHTS_MAX)
    for k in ranked[: max(left, 0)]:
        counts[k] += 1
    for _ in range(-left):
        counts[max(range(len(counts)), key=counts.__getitem__)] -= 1
    return counts


def _fraction(name: str, weight: Any) -> Fraction:
    try:
        found = Fraction(weight) if isinstance(weight, Rational) else Fraction(float(weight))
    except (TypeError, ValueError, OverflowError):
        found = Fraction(-1)
    if found < 0:
        message = f"the weight of {name!r} is {weight!r}, expected a number that is at least 0"
        raise ValueError(message)
    return found
