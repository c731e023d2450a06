"""Orders made of several."""

from collections.abc import Mapping, Sequence

from ingot.order import node as nodes
from ingot.order.arguments import Samples
from ingot.order.order import Order, node_of
from ingot.order.weights import Schedule, Weights, schedule_of
from ingot.records.verbs import Verbs


def concat(*orders: Samples | Order) -> Order:
    """Return the samples of orders or sources, one after the other.

    Raises:
        TypeError: The orders are in a list.
        ValueError: There are none, or one but the last is infinite.
    """
    return Order(nodes.Concat(_parts("concat", orders)))


def interleave(*orders: Samples | Order) -> Order:
    """Return the samples of orders or sources in turns; when one ends, the others go on.

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
            message = f"{name} takes orders one by one: ingot.{name}(*orders)"
            raise TypeError(message)
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
            goes on where it was. Weights become integers that add up to at most 65,536; if the
            given ones cannot be expressed so, the nearest are used.

    Raises:
        ValueError: A name has no weight, or a weight is negative or not a number.

    Example:
        >>> both = mix({"a": range(3), "b": range(9)}, {"a": 1, "b": 3})
        >>> both.rows(0, 8).source.tolist()
        [1, 1, 0, 1, 1, 1, 0, 1]
    """
    if not isinstance(orders, Mapping) or not all(isinstance(name, str) for name in orders):
        message = "a mix is made of a dict of names and orders"
        raise TypeError(message)
    if not orders:
        message = "a mix has at least one part"
        raise ValueError(message)
    parts = tuple(map(node_of, orders.values()))
    names = tuple(orders)
    return Order(nodes.Mix(parts, names, tuple(schedule_of(names, weights))))
