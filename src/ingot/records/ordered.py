"""Verbs that begin an order: which sample comes when."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ingot.order import Order
    from ingot.order.arguments import Lengths


class Ordered:
    """Begins an `ingot.Order` of all rows with each of these verbs, without reading them."""

    __slots__ = ()

    def _order(self) -> "Order":
        from ingot.order import Order  # noqa: PLC0415 -- it imports this module

        return Order.of(self)  # type: ignore[arg-type]

    def shuffle(self, seed: int = 0) -> "Order":
        """Put the rows in a random order, another one in each epoch; see `Order.shuffle`.

        Without a seed, it is the order of seed 0, the same in every run.
        """
        return self._order().shuffle(seed)

    def repeat(self, times: int | None = None) -> "Order":
        """Go through the rows `times` times, or without end; see `Order.repeat`."""
        return self._order().repeat(times)

    def shard(self, rank: int, world: int) -> "Order":
        """Take every `world`-th row, from row `rank` on; see `Order.shard`."""
        return self._order().shard(rank, world)

    def skip(self, n: int) -> "Order":
        """Leave out the first `n` rows; see `Order.skip`."""
        return self._order().skip(n)

    def map(self, function: Callable[..., Any], *, seed: int | None = None) -> "Order":
        """Apply a function to each row when it is read; see `Order.map`."""
        return self._order().map(function, seed=seed)

    def batch(self, size: int, *, drop_last: bool = False) -> "Order":
        """Make lists of `size` rows; see `Order.batch`."""
        return self._order().batch(size, drop_last=drop_last)

    def window(
        self,
        lengths: "Lengths",
        length: int,
        stride: int | None = None,
        *,
        fields: Sequence[str] = (),
        partial: bool = False,
    ) -> "Order":
        """Cut rows that are sequences into windows; see `Order.window`."""
        return self._order().window(lengths, length, stride, fields=fields, partial=partial)

    def pack(
        self,
        lengths: "Lengths",
        max_length: int,
        *,
        long: Literal["error", "cut", "drop"] = "error",
        fields: Sequence[str] = (),
    ) -> "Order":
        """Make lists of rows that fit into `max_length` together; see `Order.pack`."""
        return self._order().pack(lengths, max_length, long=long, fields=fields)
