"""Records, rows of a data set, or samples of an order, as a data set of PyTorch."""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, SupportsIndex, TypeAlias, TypeVar, overload

import torch.utils.data

from ingot.dataset import Dataset as Rows
from ingot.loader.collate import collate
from ingot.loader.frameworks import tensors
from ingot.locks import cached_property
from ingot.opening import open  # noqa: A004
from ingot.order import Order
from ingot.order.order import node_of
from ingot.order.samples import Columns, samples_of
from ingot.records import Reader, View
from ingot.records.expand import StrPath
from ingot.records.indices import Indices

T_co = TypeVar("T_co", covariant=True)
Source: TypeAlias = Reader | View | Rows | Order


@dataclass(frozen=True, slots=True)
class Positions:
    """The positions of an order that make a batch; they count on from epoch to epoch.

    A `Dataset` of that order reads them. They are not a list of numbers, which any other data set
    would take for rows.

    Attributes:
        start: The first position.
        stop: Where the batch ends.
    """

    __module__ = "ingot.torch"

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a sampler of an order goes with the order: pass ingot.torch.Dataset(order) to the "
            "data loader"
        )

    __array__ = __iter__


class Dataset(torch.utils.data.Dataset[T_co], Generic[T_co]):
    """Records, rows of a data set, or samples of an order, as a map-style PyTorch data set.

    A `torch.utils.data.DataLoader` reads each batch with one native call. The data set pickles
    to a path and may be used before and after a fork, so it works with workers of every start
    method.

    Args:
        source: A reader, a view, an `ingot.Dataset`, an `ingot.Order`, or anything that
            `ingot.open` takes.
        transform: Called in the worker with each record (bytes), row (a dict) or sample; returns
            the item. By default the item is the record, row or sample itself. If it has a
            parameter `rng`, it gets a `numpy.random.Generator`; that, and the choices of
            `ingot.Pictures`, follow PyTorch's random numbers, or, with an
            `ingot.torch.Sampler`, the position alone.

    Attributes:
        source: The reader, view, data set or order.
        transform: As given.

    Example:
        >>> dataset = ingot.torch.Dataset("train.ingot", decode)  # doctest: +SKIP
        >>> loader = DataLoader(dataset, batch_size=64, shuffle=True)  # doctest: +SKIP
    """

    __module__ = "ingot.torch"

    source: Source
    transform: Callable[[Any], T_co] | None

    @overload
    def __init__(
        self: "Dataset[Any]",
        source: Source | StrPath | Sequence[StrPath],
        transform: None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        source: Source | StrPath | Sequence[StrPath],
        transform: Callable[[Any], T_co],
    ) -> None: ...
    def __init__(
        self,
        source: Source | StrPath | Sequence[StrPath],
        transform: Callable[[Any], T_co] | None = None,
    ) -> None:
        given: object = source
        if isinstance(given, Iterator):
            raise TypeError(f"expected a data set, an order or a path, got {type(given).__name__}")
        self.source = source if isinstance(source, Source) else open(source)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.source)

    @overload
    def __getitem__(self, index: Positions) -> Any: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> T_co: ...
    def __getitem__(self, index: Positions | SupportsIndex) -> Any:
        if isinstance(index, Positions):
            return self._batch(index)
        (item,) = self.__getitems__([operator.index(index)])
        return item

    def __getitems__(self, indices: Indices | Positions) -> list[T_co]:
        """Return the items at `indices`; PyTorch's loader calls this per batch."""
        if isinstance(indices, Positions):
            rows = self._epochs.rows(indices.start, indices.stop)
            return samples_of(node_of(self._epochs), rows)
        if isinstance(indices, list) and any(isinstance(one, Positions) for one in indices[:1]):
            raise TypeError(
                "a sampler of an order has whole batches: pass batch_size=None to the data loader, "
                "or pass the sampler as batch_sampler="
            )
        source: Any = self.source
        return self._transformed(source.__getitems__(indices))

    def _transformed(self, samples: list[Any]) -> list[Any]:
        if self.transform is None:
            return samples
        (*_, step) = node_of(self._epochs).maps
        if not step.is_random:
            return list(map(self.transform, samples))
        seeds = torch.empty(len(samples), dtype=torch.int64).random_().tolist()
        return list(map(step.apply, samples, seeds))

    @cached_property
    def _epochs(self) -> Order:
        """The items of all epochs, one after the other."""
        order = Order.of(self.source)
        order = order if self.transform is None else order.map(self.transform)
        return order if order.is_infinite else order.repeat()

    @cached_property
    def _columns(self) -> Columns | None:
        return Columns.of(node_of(self._epochs))

    def _batch(self, positions: Positions) -> Any:
        """Return the batch of some positions as tensors, as `ingot.Loader` makes it."""
        columns = self._columns
        if columns is None:
            return as_tensors(collate(self.__getitems__(positions)))
        rows = self._epochs.rows(positions.start, positions.stop)
        (content,) = columns.fetch([rows])
        return as_tensors(columns.decode(rows, content))

    def __repr__(self) -> str:
        return f"<ingot.torch.Dataset of {self.source!r}>"


def as_tensors(batch: Any) -> Any:
    """Turn the arrays of a batch into tensors."""
    return tensors(pin_memory=False)(batch)
