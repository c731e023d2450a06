"""Verbs that readers, views and data sets share: they choose rows, or begin an order."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, SupportsIndex, TypeVar

from ingot.records.indices import Indices, Rows, parts_of, taken

if TYPE_CHECKING:
    from ingot.order import Order
    from ingot.order.arguments import Lengths


V = TypeVar("V")


class Verbs(Generic[V]):
    """Chooses rows, or begins an `ingot.Order` of all rows, without reading them.

    The rows are the records of a reader or a view, or the rows of a data set.
    """

    __slots__ = ()

    @abstractmethod
    def _table(self) -> tuple[Rows, str]:
        """Return the numbers of the rows, and the path that errors name."""

    @abstractmethod
    def _at(self, rows: Rows) -> V:
        """Return the part that has some of these numbers."""

    def take(self, indices: Indices | SupportsIndex) -> V:
        """Return the part with the rows at `indices`, in that order, without reading them.

        `take(5)` is the first five, or all if there are fewer.

        Raises:
            IndexError: An index is out of range.
        """
        rows, path = self._table()
        return self._at(taken(rows, indices, path))

    def split(self, *sizes: float, seed: int | None = 0) -> list[V]:
        """Split the rows into disjoint parts that read nothing yet.

        Args:
            sizes: The size of each part: fractions (float) or numbers of rows (int). If they do
                not cover all rows, the remainder, possibly empty, is one more part.
            seed: Seed of the random assignment of rows to parts; None for consecutive rows. In
                both cases, each part keeps the order of the rows.

        Raises:
            TypeError: The sizes are neither fractions nor numbers of rows.
            ValueError: The sizes add up to more than there is.

        Example:
            >>> train, test = ds.split(0.9)  # doctest: +SKIP
        """
        rows, _ = self._table()
        return [self.take(places) for places in parts_of(len(rows), sizes, seed)]

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
