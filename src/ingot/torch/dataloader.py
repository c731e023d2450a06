"""PyTorch's data loader along an order, with a place that can be saved."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

import torch.utils.data

from ingot.loader.topology import Shard
from ingot.order import Order
from ingot.processes import check_pickles
from ingot.torch.dataset import Dataset, Source
from ingot.torch.parcel import Parcel
from ingot.torch.sampler import Sampler

_OF_THE_ORDER = {
    "shuffle": "shuffle the order: order.shuffle(seed)",
    "sampler": "say which samples in the order, or use torch.utils.data.DataLoader",
    "batch_sampler": "say which samples in the order, or use torch.utils.data.DataLoader",
}


class DataLoader(torch.utils.data.DataLoader[Any]):
    """PyTorch's data loader along an order: worker processes, and the batches of `ingot.Loader`.

    It counts the batches that it hands out, whatever its workers have read ahead. So its state
    is exact, and it is the state of an `ingot.Loader`: a run may go on with either, with another
    number of workers, and on another number of ranks. As with `ingot.Loader`, a loop goes on from
    where the loader is to the end of the epoch, and the next one is the next epoch.

    Each worker reads a batch with one native call, as columns where samples are rows of a data
    set, and the arrays of a batch arrive as tensors.

    Args:
        dataset: A `Dataset`, or what one is made of: an order, a data set, a reader, a view, a
            path.
        batch_size: The number of samples of a step, on all ranks together.
        shard: Rank and number of ranks, as for `ingot.Loader`.
        drop_last: Whether to leave out samples after the last whole batch of an epoch.
        collate_fn: Called with the list of samples of a batch, in a worker; returns the batch.
        options: All other options of PyTorch's data loader, such as `num_workers`.

    Raises:
        TypeError: An option is given that the order decides.
        ValueError: The order has too few samples for a batch, or a batch too few for the ranks.

    Example:
        >>> order = ingot.open("cats/").shuffle(seed=0)  # doctest: +SKIP
        >>> loader = ingot.torch.DataLoader(order, batch_size=64, num_workers=4)  # doctest: +SKIP
    """

    __module__ = "ingot.torch"

    def __init__(
        self,
        dataset: "Dataset[Any] | Order | Sequence[Any]",
        batch_size: int,
        *,
        shard: Shard = "auto",
        drop_last: bool = True,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        **options: Any,
    ) -> None:
        for name, advice in _OF_THE_ORDER.items():
            if options.get(name):
                message = f"the order says which sample comes when, not {name}=: {advice}"
                raise TypeError(message)
        if not options.get("in_order", True):
            message = "batches that come in any order have no place to resume at: in_order=True"
            raise ValueError(message)
        samples = dataset if isinstance(dataset, Dataset) else _dataset_of(dataset)
        self._positions = Sampler(samples, batch_size, shard=shard, drop_last=drop_last)
        self._step = 0
        self._loop: object = None
        if collate_fn is None:
            convert = Parcel if options.get("num_workers") else _unchanged
            options |= {"sampler": self._positions, "batch_size": None, "collate_fn": convert}
        else:
            options |= {"batch_sampler": self._positions, "collate_fn": collate_fn}
        super().__init__(samples, **options)

    @property
    def step(self) -> int:
        """The step that is handed out next; steps count on from epoch to epoch."""
        return self._positions._skipped.first_from(self._step)  # noqa: SLF001

    @property
    def epoch(self) -> int:
        """The epoch of that step; 0 for an infinite order."""
        return self._positions._steps.epoch_of(self.step)  # noqa: SLF001

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        """Go on from here to the end of the epoch.

        Raises:
            TypeError: Workers are not forked, and a function cannot be sent to them.
        """
        context = self.multiprocessing_context or multiprocessing
        if self.num_workers and context.get_start_method() != "fork":
            check_pickles((self.dataset, self.collate_fn), "use ingot.Loader, which has threads")
        self._positions.seek(self._step)
        self._loop = loop = object()
        return _Batches(self, super().__iter__(), loop)

    def __repr__(self) -> str:
        return f"<ingot.torch.DataLoader at step {self.step}, {self._positions!r}>"

    def seek(self, step: SupportsIndex) -> None:
        """Go to a step, which the next loop begins with.

        Raises:
            ValueError: There is no such step.
        """
        self._positions.seek(step)
        self._step, self._loop = self._positions.step, None

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader is: a small dict that can be stored as JSON.

        It counts the batches that were handed out, not those that were read ahead, and is the same
        on every rank.
        """
        return self._positions.state_at(self._step)

    def load_state_dict(self, state: Mapping[str, Any], *, check_data: bool = True) -> None:
        """Go on where a loader was, on any number of ranks and workers.

        Args:
            state: What `state_dict` of this class or of an `ingot.Loader` has returned, or one
                that `Sampler.load_state_dict` takes.
            check_data: As for `ingot.Loader.load_state_dict`.

        Raises:
            TypeError: It is not a state.
            ValueError: It is the state of another order, or no batch begins at its position.
        """
        self._positions.load_state_dict(state, check_data=check_data)
        self._step, self._loop = self._positions.step, None


def _unchanged(batch: Any) -> Any:
    return batch


def _dataset_of(source: Any) -> Dataset[Any]:
    """Return paths, rows, an order or any other sequence as a data set."""
    first = source[0] if isinstance(source, list) and source else source
    is_known = isinstance(first, str | os.PathLike) or isinstance(source, Source)
    return Dataset(source if is_known else Order.of(source))


class _Batches(Iterator[Any]):
    """The batches of one loop over a data loader, which counts them."""

    def __init__(self, loader: DataLoader, batches: Iterator[Any], loop: object) -> None:
        self._loader = loader
        self._batches = batches
        self._loop = loop

    def __next__(self) -> Any:
        loader = self._loader
        if loader._loop is not self._loop:  # noqa: SLF001 -- this is a part of the loader
            message = (
                "this loop is over: an error has ended it, or the loader has begun another one or "
                f"was sent elsewhere; the next loop over the loader goes on at step {loader.step}"
            )
            raise RuntimeError(message)
        step = loader.step
        try:
            batch = next(self._batches)
        except StopIteration:
            raise
        except BaseException:
            # PyTorch would go on with the batch after the one that failed.
            loader._loop = None  # noqa: SLF001
            raise
        loader._step = step + 1  # noqa: SLF001
        return batch
