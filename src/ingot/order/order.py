"""An order: which sample is at which position."""

import operator
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np

from ingot.order import node as nodes
from ingot.order.arguments import (
    INT64_MAX,
    Indices,
    Lengths,
    Samples,
    count_of,
    fields_of,
    integer_of,
    integers_of,
    lengths_of,
    seed_of,
    takes_rng,
)
from ingot.order.description import Description, fingerprint_of, lines_of, with_data
from ingot.order.node import Condition, Node
from ingot.order.rows import Origin, Rows, origins_of, rows_of
from ingot.order.samples import samples_of

_AHEAD = 32
_SAME_CHOICES = (
    "a loader that asks this order for the same positions in every epoch, as PyTorch's does, "
    "gets the same random choices in every epoch: use ingot.torch.DataLoader(order, batch_size), "
    "or pass ingot.torch.Dataset(data, function) to PyTorch's loader"
)


class Order(Sequence[Any]):
    """Which sample is at which position: a pure function, composed of steps.

    `Order.of(source)` has the rows of a source; each method adds a step and returns a new
    order. An order has no state, and whatever it is composed of, it finds the row of any
    position at once, without a table of all rows. `order[i]` is the sample at position `i`.
    `order[a:b]` is an order of those samples and reads nothing.

    An order pickles as its composition, with its sources and functions.
    """

    __module__ = "ingot"
    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        if not hasattr(node, "filtered"):
            raise TypeError(f"call Order.of(source) to make an order of {type(node).__name__}")
        _ = node.native  # The engine refuses what cannot be.
        self._node = node

    @classmethod
    def of(cls, source: "Samples | Order", rows: Indices | None = None) -> "Order":
        """Return the rows of a source in their own order.

        Args:
            source: An `ingot.Dataset`, an `ingot.Reader` or an `ingot.View`, or any other
                sequence. An order is returned as it is.
            rows: The rows to have, in this order; all of them by default.

        Raises:
            TypeError: The source is a path, or has no length or no rows by number.
            ValueError: A row is not in the source.
        """
        if isinstance(source, Order) and rows is None:
            return source
        if isinstance(source, str | os.PathLike):
            raise TypeError(
                f"expected a data set or an order, got a path: ingot.open({source!r}) opens it"
            )
        if not hasattr(source, "__len__") or not hasattr(source, "__getitem__"):
            message = f"an order is made of a sequence, not of {type(source).__name__}"
            if isinstance(source, Iterator):
                message += ": list(...) makes one, or ingot.from_generator(...) if it is large"
            raise TypeError(message)
        if isinstance(source, Mapping | bytes):
            message = f"an order is made of a sequence of samples, not of {type(source).__name__}"
            raise TypeError(message)
        table = None if rows is None else integers_of(rows, "rows")
        return cls(nodes.Leaf(source, len(source), table))

    @property
    def sources(self) -> list[Samples]:
        """The sources of the rows; `Rows.source` has numbers into this list."""
        return list(self._node.sources)

    @property
    def is_infinite(self) -> bool:
        """Whether there is a sample at every position."""
        return self._node.native.length is None

    @property
    def fingerprint(self) -> str:
        """A short hash of `describe()`, to tell this order from others."""
        return fingerprint_of(self.describe())

    def describe(self, *, data: bool = True) -> Description:
        """Return what the order is composed of, as a dict that can be stored as JSON.

        It tells sources by type, number of rows, fields and content, and functions by name.
        `ingot.order.difference` compares two of them.

        Args:
            data: Whether to tell sources by their content, too: by the ids of Ingot files, and
                by sizes and samples of others. This is looked up once.
        """
        found = self._node.describe()
        return with_data(found, iter(self._node.data)) if data else found

    def __len__(self) -> int:
        length = self._node.native.length
        if length is None:
            raise TypeError("an infinite order has no length; take(n) makes it finite")
        return length

    def __bool__(self) -> bool:
        return self._node.native.length != 0

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> "Order": ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return self._slice(index)
        if not hasattr(index, "__index__"):
            raise TypeError(
                f"positions are integers or slices, not {type(index).__name__}; "
                "__getitems__ reads several samples, and a data loader with an "
                "ingot.torch.Sampler takes ingot.torch.Dataset(order)"
            )
        position = operator.index(index)
        if position < 0 or position >= self._bound():
            (sample,) = samples_of(self._node, self.rows_at([position]))
        else:
            (sample,) = samples_of(self._node, self.rows(position, position + 1))
        return sample

    def __getitems__(self, positions: Indices) -> list[Any]:
        """Return the samples at several positions, with one read for all data sets.

        PyTorch's loader calls this per batch. It asks for the same positions in every epoch, so
        an order of one epoch that makes random choices warns of that.
        """
        if any(one.is_random for one in self._node.maps) and not self._node.repeats:
            warnings.warn(_SAME_CHOICES, stacklevel=2)
        return samples_of(self._node, self.rows_at(positions))

    def __iter__(self) -> Iterator[Any]:
        ahead = 1 if self._node.native.num_groups else _AHEAD
        start, length = 0, self._node.native.length
        while length is None or start < length:
            stop = start + ahead if length is None else min(start + ahead, length)
            yield from samples_of(self._node, self.rows(start, stop))
            start = stop

    def rows(self, start: SupportsIndex, stop: SupportsIndex) -> Rows:
        """Return which rows the positions from `start` to `stop` are, without reading them.

        Raises:
            IndexError: These positions are not all in the order.
        """
        first, last = operator.index(start), operator.index(stop)
        if not 0 <= first <= last:
            raise IndexError(f"expected 0 <= start <= stop, got {first} and {last}")
        if last > self._bound():
            raise IndexError(self._out_of_range(last - 1))
        return rows_of(self._node.native.rows(first, last))

    def rows_at(self, positions: Indices) -> Rows:
        """Return which rows some positions are, without reading them.

        Raises:
            IndexError: A position is not in the order.
        """
        wanted = integers_of(positions, "positions")
        if (wanted < 0).any():
            if self.is_infinite:
                message = f"position {wanted.min()} counts from the end, and the order has no end"
                raise IndexError(message)
            wanted = np.where(wanted < 0, wanted + len(self), wanted)
        bad = (wanted < 0) | (wanted >= self._bound())
        if bad.any():
            raise IndexError(self._out_of_range(integers_of(positions, "positions")[bad.argmax()]))
        return rows_of(self._node.native.rows_at(wanted))

    def origins(self, rows: Rows) -> list[Origin]:
        """Return where rows are stored, without reading them.

        `Rows.row` counts in the source, which may be a part of what was opened: a slice, a split,
        or what `where` has left. An origin has the number that `verify` and errors have, and the
        file.

        Args:
            rows: What `rows`, `rows_at` or `Loader.indices` returned.
        """
        return origins_of(self._node.sources, rows)

    def _bound(self) -> int:
        length = self._node.native.length
        return INT64_MAX if length is None else length

    def _out_of_range(self, position: int) -> str:
        return f"position {position} is out of range for an order of {self._bound()} positions"

    def shuffle(self, seed: int = 0) -> "Order":
        """Put the samples in a random order, another one in each epoch of a later `repeat`.

        Without a seed, it is the order of seed 0, the same in every run.

        Raises:
            ValueError: The order is infinite: shuffle first, then repeat.
        """
        return Order(nodes.Shuffle(self._node, seed_of(seed)))

    def repeat(self, times: int | None = None) -> "Order":
        """Go through the samples `times` times, or without end."""
        times = None if times is None else count_of(times, "times")
        return Order(nodes.Repeat(self._node, times))

    def shard(self, rank: int, world: int) -> "Order":
        """Take every `world`-th sample, from position `rank` on: what one of several has to do."""
        rank, world = integer_of(rank, "rank"), integer_of(world, "world")
        if not 0 <= rank < world:
            raise ValueError(f"expected 0 <= rank < world, got rank {rank} of {world}")
        world = count_of(world, "world", 1)
        words = {"kind": "shard", "rank": rank, "world": world}
        return self._cut(rank, None, world, words)

    def take(self, n: int) -> "Order":
        """Take the first `n` samples, or all if there are fewer."""
        count = count_of(n, "n")
        return self._cut(0, count, 1, {"kind": "take", "n": count})

    def skip(self, n: int) -> "Order":
        """Leave out the first `n` samples."""
        count = count_of(n, "n")
        return self._cut(count, None, 1, {"kind": "skip", "n": count})

    def _slice(self, index: slice) -> "Order":
        start, stop, step = (
            None if one is None else operator.index(one)
            for one in (index.start, index.stop, index.step)
        )
        if self.is_infinite and min(start or 0, stop or 0, (step or 1) - 1) < 0:
            message = "an infinite order has no end to count from; slice it with positive numbers"
            raise ValueError(message)
        step = 1 if step is None else step
        if self.is_infinite:
            start, step = count_of(start or 0, "start"), count_of(step, "step", 1)
            stop = None if stop is None else min(stop, INT64_MAX)
        if not self.is_infinite:
            step = max(-INT64_MAX, min(step, INT64_MAX))
            start, stop, step = slice(start, stop, step).indices(len(self))
            stop = None if stop < 0 else stop
        words = {"kind": "slice", "start": start, "stop": stop, "step": step}
        return self._cut(start or 0, stop, step, words)

    def _cut(self, start: int, stop: int | None, step: int, words: Description) -> "Order":
        length = self._node.native.length
        if length is None and stop is None:
            count = None
        else:
            ends = [one for one in (stop, length) if one is not None]
            last = min(ends) if step > 0 else (-1 if stop is None else stop)
            count = len(range(start, last, step))
        start = 0 if count == 0 else start
        return Order(nodes.Slice(self._node, start, step, count, words))

    def map(self, function: Callable[..., Any], *, seed: int | None = None) -> "Order":
        """Apply a function to each sample when it is read.

        Args:
            function: Called with the sample. If it has a parameter `rng`, it gets a
                `numpy.random.Generator` whose numbers depend on the seed, the map, the epoch and
                the position of the sample alone, so they are the same wherever and whenever the
                sample is read.
            seed: The seed of these numbers; by default that of the nearest shuffle before, or 0.
        """
        number = self._node.seed if seed is None else seed_of(seed)
        return Order(nodes.Map(self._node, function, number, takes_rng(function)))

    def filter(self, condition: Condition, *names: str) -> "Order":
        """Keep the rows that meet a condition, as `Dataset.where` does.

        The sources must be data sets. Steps that depend on how many samples there are (slices,
        `shard`, `take`, `skip`, `batch`, `window`, `pack`) go after it. It sees the stored values,
        not those that maps return.

        Args:
            condition: An expression such as `label == 3`; or a function that takes the columns
                `names` and returns a boolean for each row, or such booleans.
            names: Fields that are numbers, for a function.
        """
        return Order(self._node.filtered(condition, names))

    def batch(self, size: int, *, drop_last: bool = False) -> "Order":
        """Make lists of `size` samples; the last one may be shorter, or is left out."""
        return Order(nodes.Batch(self._node, count_of(size, "size", 1), bool(drop_last)))

    def window(
        self,
        lengths: Lengths,
        length: int,
        stride: int | None = None,
        *,
        fields: Sequence[str] = (),
        partial: bool = False,
    ) -> "Order":
        """Cut samples that are sequences into windows, each of which is a sample.

        Of a data set, a window has those elements of the fields that are cut, and the other fields
        as they are. Of other sources, it is a slice of the sample.

        Args:
            lengths: The name of a sequence in the data sets; or the length of each row of the
                source, as an array. For several sources, a list of arrays.
            length: Elements in a window.
            stride: From one window to the next; `length` by default.
            fields: The sequences to cut; by default the one that `lengths` names.
            partial: Whether elements after the last whole window make a shorter one.
        """
        step = length if stride is None else stride
        plain = lengths_of(lengths, len(self._node.sources))
        cut = fields_of(self._node.sources, plain, fields)
        size, step = count_of(length, "length", 1), count_of(step, "stride", 1)
        return Order(nodes.Window(self._node, plain, cut, size, step, bool(partial)))

    def pack(
        self,
        lengths: Lengths,
        max_length: int,
        *,
        long: Literal["error", "cut", "drop"] = "error",
        fields: Sequence[str] = (),
    ) -> "Order":
        """Make lists of samples that fit into `max_length` together.

        Packs are planned among 4096 samples at a time, once for all epochs: a `shuffle` before
        decides which samples come together, one behind it permutes packs.

        Args:
            lengths: The name of a sequence in the data sets; or the length of each row of the
                source, as an array. For several sources, a list of arrays.
            max_length: What the lengths of the samples of a pack add up to at most.
            long: What becomes of a sample that is longer: an error, pieces of it, or nothing.
            fields: The sequences that `long="cut"` cuts; by default the one that `lengths` names.
        """
        if long not in {"error", "cut", "drop"}:
            raise ValueError(f'long is "error", "cut" or "drop", not {long!r}')
        plain = lengths_of(lengths, len(self._node.sources))
        cut = fields_of(self._node.sources, plain, fields) if long == "cut" or fields else ()
        most = count_of(max_length, "max_length", 1)
        return Order(nodes.Pack(self._node, plain, cut, most, long))

    def concat(self, *others: "Samples | Order") -> "Order":
        """Append the samples of other orders or sources."""
        return Order(nodes.Concat((self._node, *map(node_of, others))))

    def __repr__(self) -> str:
        return "\n".join(lines_of(self.describe(data=False)))


def node_of(one: Samples | Order) -> Node:
    """Return the last step of an order, or the rows of a source."""
    return Order.of(one)._node  # noqa: SLF001
