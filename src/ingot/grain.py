"""Rows and batches in Grain: a source for its pipelines, and batches that its checkpoints save."""

import operator
from collections.abc import Sequence
from os import PathLike
from typing import Any, Generic, SupportsIndex, TypeVar

from ingot.dataset import Dataset
from ingot.errors import counted
from ingot.extras import requirement
from ingot.loader import Loader
from ingot.loader.steps import Place
from ingot.opening import open  # noqa: A004
from ingot.order import Order
from ingot.order.arguments import Indices, Samples
from ingot.records import Reader, View
from ingot.records.expand import StrPath

with requirement("grain", "ingot.grain"):
    import grain

__all__ = ["BatchIterator", "Batches", "Source"]

T_co = TypeVar("T_co", covariant=True)


class Source(Generic[T_co]):
    """Records, rows or samples of an order as a source of Grain's pipelines and data loader.

    A source pickles as what it is made of, for Grain's worker processes. Its `repr`, by which
    Grain tells whether a checkpoint fits, names files and directories but not where they are, so
    that data that has been moved resumes. Where Grain asks for several items at once, they are
    one native read; its `batch` asks for one after the other.

    Args:
        source: A reader, a view, a data set, a finite order, any other sequence, or a path that
            `ingot.open` takes.

    Raises:
        ValueError: The order is infinite; Grain has `repeat` of its own.

    Attributes:
        order: The order of the samples.

    Example:
        >>> rows = grain.MapDataset.source(ingot.grain.Source("train"))  # doctest: +SKIP
        >>> batches = rows.shuffle(seed=0).batch(batch_size=64)  # doctest: +SKIP
    """

    order: Order

    def __init__(self, source: Sequence[T_co] | Order | StrPath) -> None:
        opened: Any = open(source) if isinstance(source, str | PathLike) else source
        self.order = Order.of(opened)
        if self.order.is_infinite:
            message = "a source of Grain has an end: leave repeat() out, and call Grain's repeat"
            raise ValueError(message)
        # Grain asks for one item after the other, which readers and data sets answer fastest.
        self._items: Any = opened if isinstance(opened, Dataset | Reader | View) else self.order

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: SupportsIndex) -> T_co:
        item: T_co = self._items[operator.index(index)]
        return item

    def __getitems__(self, indices: Indices) -> list[T_co]:
        """Return the items at `indices`, with one native read."""
        items: list[T_co] = self._items.__getitems__(indices)
        return items

    def _getitems(self, indices: Indices) -> list[T_co]:
        """Do the same, by the name that Grain calls it."""
        return self.__getitems__(indices)

    def __repr__(self) -> str:
        words = " ".join(repr(self.order).split())
        return f"<ingot.grain.Source {self.order.fingerprint} of {words}>"


class Batches(grain.IterDataset[Any]):
    """Batches of an `ingot.Loader` as a data set of Grain, one pass over an order.

    Each iterator has a loader of its own, with its threads. Its state is that of the loader: a
    place in the order, the same for all processes, whatever their number. Steps of Grain may
    follow, but not `mp_prefetch`, because batches are made in threads.

    Args:
        order: An order, a data set, a reader, a view, or any other sequence of samples.
        batch_size: The number of samples of a step in each process.
        **options: Other options of `ingot.Loader`, such as `global_batch_size` in place of
            `batch_size`.

    Example:
        >>> batches = iter(ingot.grain.Batches(order, 64))  # doctest: +SKIP
        >>> checkpoint = grain.checkpoint.CheckpointSave(batches)  # doctest: +SKIP
    """

    def __init__(
        self,
        order: Samples | Order,
        batch_size: int | None = None,
        **options: Any,  # noqa: ANN401 -- those of a loader
    ) -> None:
        super().__init__()
        self._order = Order.of(order)
        self._batch_size = batch_size
        self._options = options
        with self._new_loader() as loader:  # A mistake shows here, not in the first step.
            self._size = loader.batch_size

    def _new_loader(self) -> Loader:
        return Loader(self._order, self._batch_size, **self._options)

    def __iter__(self) -> "BatchIterator":
        return BatchIterator(self._new_loader())

    def __str__(self) -> str:
        return f"<ingot.grain.Batches of {counted(self._size, 'sample')} of {self._order!r}>"


class BatchIterator(grain.DatasetIterator[Any]):
    """The batches of one loop over a loader, as an iterator of Grain.

    Grain's and Orbax's checkpoints save and restore it.

    Args:
        loader: The loader, which the iterator moves on, and closes when it ends: by `close`, or
            when no reference to the iterator is left.

    Attributes:
        loader: As given.
    """

    loader: Loader

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self.loader = loader
        self._begin()

    def _begin(self) -> None:
        self._batches = iter(self.loader)
        _, self._stop = self._place.upcoming

    @property
    def _place(self) -> Place:
        return self.loader._place  # noqa: SLF001 -- the same library

    def __next__(self) -> Any:  # noqa: ANN401 -- batches are of any type
        batch = next(self._batches)
        self._stop = self._place.stop
        return batch

    def get_state(self) -> dict[str, Any]:
        """Return where the loader is: a small dict that can be stored as JSON."""
        return self.loader.state_dict()

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue where a loader was; at the end of this epoch, there are no more batches.

        Raises:
            ValueError: It is the state of another order; the message names the difference.
        """
        self.loader.load_state_dict(state)
        if self.loader.step == self._stop:
            self._batches = iter(())
        else:
            self._begin()

    def start_prefetch(self) -> None:
        """Begin to read ahead, before the first batch is asked for."""
        self.loader.start()

    def close(self) -> None:
        """End the threads of the loader and wait for them."""
        super().close()
        self.loader.close()

    def __str__(self) -> str:
        return f"<ingot.grain.BatchIterator of {self.loader!r}>"
