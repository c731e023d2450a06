"""Several orders as one: mixed by weights, in turns, or one after the other."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from numbers import Rational
from typing import Any, TypeAlias

from ingot.order import node as nodes
from ingot.order.arguments import INT64_MAX, Samples
from ingot.order.order import Order, node_of
from ingot.records.verbs import Verbs

Weights: TypeAlias = Mapping[str, float | Fraction]
Schedule: TypeAlias = Sequence[tuple[int, Weights]]

WEIGHTS_MAX = 65_536
"""Integer weights add up to at most this."""


def concat(*orders: Samples | Order) -> Order:
    """Return the samples of orders or sources, one after the other.

    Raises:
        TypeError: The orders are in a list.
        ValueError: There are none, or one but the last is infinite.
    """
    return Order(nodes.Concat(_parts("concat", orders)))


def interleave(*orders: Samples | Order) -> Order:
    """Return the samples of orders or sources in turns; when one ends, the others continue.

    Raises:
        TypeError: The orders are in a list.
        ValueError: There are none.
    """
    return Order(nodes.Interleave(_parts("interleave", orders)))


def _parts(name: str, orders: Sequence[Samples | Order]) -> tuple[nodes.Node, ...]:
    """Return the last step of each order.

    Raises:
        TypeError: The orders are in a list.
    """
    for one in orders:
        parts = one if isinstance(one, list | tuple) else []
        if parts and all(isinstance(part, Verbs | Order) for part in parts):
            raise TypeError(f"{name} takes orders one by one: ingot.{name}(*orders)")
    return tuple(map(node_of, orders))


def mix(orders: Mapping[str, Samples | Order], weights: Weights | Schedule) -> Order:
    """Return the samples of orders or sources in the proportions of their weights.

    After any number of positions, the number of samples of each order differs by less than one
    from its share. The mix ends before the first position for which the order that is due has no
    sample left; orders that are repeated without end never lack one.

    Args:
        orders: Orders or sources, by name.
        weights: A number for each name. To change them at some positions, a list of positions
            and weights from there on: `[(0, {...}), (100_000, {...})]`. At a change, every order
            continues where it was. Weights become integers that add up to at most 65,536; if the
            given ones cannot be expressed so, the nearest are used.

    Raises:
        ValueError: A name has no weight, or a weight is negative or not a number.

    Example:
        >>> both = mix({"a": range(3), "b": range(9)}, {"a": 1, "b": 3})
        >>> both.rows(0, 8).source.tolist()
        [1, 1, 0, 1, 1, 1, 0, 1]
    """
    if not isinstance(orders, Mapping) or not all(isinstance(name, str) for name in orders):
        raise TypeError("a mix is made of a dict of names and orders")
    if not orders:
        raise ValueError("a mix has at least one part")
    parts = tuple(map(node_of, orders.values()))
    names = tuple(orders)
    return Order(nodes.Mix(parts, names, tuple(schedule_of(names, weights))))


def schedule_of(names: Sequence[str], weights: Weights | Schedule) -> list[tuple[int, list[int]]]:
    """Return the positions from which weights apply, with integer weights in the order of names.

    Raises:
        TypeError: The weights are neither a dict nor a list of positions and dicts.
        ValueError: They do not fit the names, or are not numbers of at least 0.
    """
    if isinstance(weights, Mapping):
        return [(0, _integers(names, weights))]
    if not isinstance(weights, Sequence) or not all(map(_is_entry, weights)):
        raise TypeError(
            "weights are a dict of names and numbers, or a list such as "
            f"[(0, {{...}}), (1000, {{...}})], not {weights!r}"
        )
    starts = [start for start, _ in weights]
    if not starts or starts[0] != 0 or any(a >= b for a, b in pairwise(starts)):
        message = f"the positions at which weights change begin with 0 and go up, got {starts}"
        raise ValueError(message)
    if starts[-1] > INT64_MAX:
        raise ValueError(f"positions are below 2^63, got {starts[-1]}")
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
        raise ValueError(f"the weights of {list(names)} are all 0")
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
