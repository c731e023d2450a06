"""Iterable data sets that begin at any position of a shard without reading those before it."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, Self

from datasets import DatasetInfo, IterableDataset
from datasets.formatting import PythonFormatter
from datasets.iterable_dataset import ArrowExamplesIterable, ExamplesIterable

from ingot.dataset import Dataset
from ingot.hf.export import features_and_reader
from ingot.order import Order
from ingot.order.order import node_of
from ingot.order.samples import samples_of

_BYTES = 8 << 20
_ROWS = 256
_AHEAD = 32


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a data set, as tables.

    Attributes:
        dataset: The rows.
        height: The number of rows in each table but the last.
    """

    dataset: Dataset
    height: int

    def tables(self, start: int) -> Iterator[tuple[int, Any]]:
        """Yield tables from row `start` on, and where each begins.

        They end at the same rows, wherever they begin.
        """
        first = start
        while first < len(self.dataset):
            stop = first - first % self.height + self.height
            features, reader = features_and_reader(self.dataset[first:stop])
            yield first, reader.read_all().cast(features.arrow_schema).combine_chunks()
            first = stop


@dataclass(frozen=True)
class Share:
    """Some positions of an order."""

    order: Order

    def examples(self, start: int) -> Iterator[Any]:
        """Yield samples from the one at `start` on."""
        for first in range(start, len(self.order), _AHEAD):
            stop = min(first + _AHEAD, len(self.order))
            yield from samples_of(node_of(self.order), self.order.rows(first, stop))


@dataclass(frozen=True)
class Dealt:
    """Positions of an order without end, equally far apart.

    Attributes:
        order: The order.
        number: The first of these positions.
        every: How far they are apart.
    """

    order: Order
    number: int
    every: int


class _Shards:
    """What iterables of this module have in common, by the protocol of `datasets`.

    Their state counts shards and rows, so that iterating begins at a row without reading those
    before it. They go into `IterableDataset` as `kwargs["parts"]`, a list of one for each shard.
    """

    kwargs: dict[str, list[Any]]
    num_shards: int
    _state_dict: dict[str, Any] | None

    def __init__(self, parts: Sequence[Any]) -> None:
        super().__init__(_nothing, {"parts": list(parts)})  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kwargs["parts"],), {"_state_dict": self._state_dict}

    def shuffle_data_sources(self, generator: Any) -> Self:
        """Return the shards in another order."""
        order = deepcopy(generator).permutation(self.num_shards)
        return type(self)([self.kwargs["parts"][k] for k in order])

    def shard_data_sources(self, num_shards: int, index: int, contiguous: bool = True) -> Self:  # noqa: FBT001, FBT002
        """Return the shards of one of several readers."""
        split: Callable[..., list[int]] = self.split_shard_indices_by_worker  # type: ignore[attr-defined]
        mine = split(num_shards, index, contiguous=contiguous)
        return type(self)([self.kwargs["parts"][k] for k in mine])

    def reshard_data_sources(self) -> Self:
        """Return the same shards."""
        return self

    def _places(self) -> Iterator[tuple[int, Any, int]]:
        """Yield the number of each shard that is left, the shard, and where to begin in it."""
        state = self._state_dict or {"shard_idx": 0, "shard_example_idx": 0}
        start = state["shard_example_idx"]
        for k in range(state["shard_idx"], self.num_shards):
            yield k, self.kwargs["parts"][k], start
            start = 0
            self._move(k + 1, 0)

    def _move(self, shard: int, row: int) -> None:
        """Remember how far iterating has come."""
        if self._state_dict:
            self._state_dict["shard_idx"] = shard
            self._state_dict["shard_example_idx"] = row


class _Tables(_Shards, ArrowExamplesIterable):
    """The tables of parts of a data set."""

    def _iter_arrow(self) -> Iterator[tuple[str, Any]]:
        for k, part, start in self._places():
            for at, table in part.tables(start):
                self._move(k, at + len(table))
                yield f"{k}_{at}", table

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        formatter = PythonFormatter()
        for k, part, start in self._places():
            for at, table in part.tables(start):
                batch = formatter.format_batch(table)
                for j in range(len(table)):
                    self._move(k, at + j + 1)
                    yield f"{k}_{at + j}", {name: values[j] for name, values in batch.items()}


class _EndlessSamples(_Shards, ExamplesIterable):
    """The samples of parts without end, one of each part in turn.

    In their state, the row is the number of rounds, and the shard is that of the next turn.
    """

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        parts: list[Dealt] = self.kwargs["parts"]
        if not parts:
            return
        state = self._state_dict or {"shard_idx": 0, "shard_example_idx": 0}
        begin = state["shard_example_idx"] * len(parts) + state["shard_idx"]
        for first in count(begin, _AHEAD):
            turns = [divmod(turn, len(parts)) for turn in range(first, first + _AHEAD)]
            positions = [at * parts[k].every + parts[k].number for at, k in turns]
            order = parts[0].order
            samples = samples_of(node_of(order), order.rows_at(positions))
            for (at, k), example in zip(turns, samples, strict=True):
                is_last = k + 1 == len(parts)
                self._move(0 if is_last else k + 1, at + is_last)
                yield f"{k}_{at}", example


class _Samples(_Shards, ExamplesIterable):
    """The samples of parts of an order."""

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for k, share, start in self._places():
            for at, example in enumerate(share.examples(start), start):
                self._move(k, at + 1)
                yield f"{k}_{at}", example


def _nothing(parts: Sequence[Any]) -> Iterator[Any]:
    """Stand in for a function that would make examples of parts."""
    del parts
    return iter(())


def of_dataset(dataset: Dataset, shards: int) -> Any:
    """Return the rows of a data set as an iterable data set with features."""
    features, _ = features_and_reader(dataset[:_ROWS])
    size = dataset.nbytes // max(1, len(dataset))
    height = max(1, min(_ROWS, _BYTES // max(1, size)))
    parts = [Part(dataset[a:b], height) for a, b in _cuts(len(dataset), shards)]
    return IterableDataset(_Tables(parts), info=DatasetInfo(features=features))


def of_order(order: Order, shards: int) -> Any:
    """Return the samples of an order as an iterable data set."""
    if order.is_infinite:
        dealt = [Dealt(order, k, shards) for k in range(shards)]
        return IterableDataset(_EndlessSamples(dealt))
    shares = [Share(order[a:b]) for a, b in _cuts(len(order), shards)]
    return IterableDataset(_Samples(shares))


def _cuts(length: int, shards: int) -> list[tuple[int, int]]:
    """Return where consecutive parts begin and end; none is empty, unless there are no rows."""
    shards = max(1, min(shards, length))
    ends = [length * k // shards for k in range(shards + 1)]
    return list(pairwise(ends))
