"""PyTorch's data loader along an order, with a checkpointable position."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, SupportsIndex, cast

import torch.utils.data

from ingot.loader.arguments import Shard
from ingot.loader.frameworks import each_leaf
from ingot.loader.state import state_of
from ingot.loader.steps import Place
from ingot.order import Order
from ingot.order.arguments import Samples
from ingot.processes import check_pickles
from ingot.torch.dataset import Dataset, Source, as_tensors
from ingot.torch.sampler import Sampler

_OF_THE_ORDER = {
    "shuffle": "shuffle the order: order.shuffle(seed)",
    "sampler": "say which samples in the order, or use torch.utils.data.DataLoader",
    "batch_sampler": "say which samples in the order, or use torch.utils.data.DataLoader",
}
_PIPED_BYTES_MAX = 256 << 10
_PIPED_TYPES = {
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
}


class DataLoader(torch.utils.data.DataLoader[Any]):
    """PyTorch's data loader along an order: worker processes, and the batches of `ingot.Loader`.

    It counts the batches that it hands out, whatever its workers have read ahead. So its state
    is exact, and it is the state of an `ingot.Loader`: a run may continue with either, with another
    number of workers, and on another number of ranks. Loops begin and end as those over an
    `ingot.Loader` do: each is an epoch, unless `seek` or `load_state_dict` say where it begins.

    Each worker reads a batch with one native call, as columns where samples are rows of a data
    set, and the arrays of a batch arrive as tensors.

    Args:
        dataset: A `Dataset`, or what one is made of: an order, a data set, a reader, a view, a
            path.
        batch_size: The number of samples of a step on each rank.
        global_batch_size: The number on all ranks together, in place of `batch_size`, for the
            same batches on any number of ranks.
        shard: Rank and number of ranks, as for `ingot.Loader`.
        drop_last: Whether to leave out samples after the last whole batch of an epoch. The last
            batch is shared among ranks as that of `ingot.Loader` is.
        collate_fn: Called with the list of samples of a batch, in a worker; returns the batch.
        options: All other options of PyTorch's data loader, such as `num_workers`.

    Raises:
        TypeError: An option is given that the order decides, or not exactly one of `batch_size`
            and `global_batch_size`.
        ValueError: The order has too few samples for a batch, or a batch too few for the ranks.

    Example:
        >>> order = ingot.open("cats/").shuffle(seed=0)  # doctest: +SKIP
        >>> loader = ingot.torch.DataLoader(order, batch_size=64, num_workers=4)  # doctest: +SKIP
    """

    __module__ = "ingot.torch"

    def __init__(
        self,
        dataset: "Dataset[Any] | Order | Samples",
        batch_size: int | None = None,
        *,
        global_batch_size: int | None = None,
        shard: Shard = "auto",
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        **options: Any,
    ) -> None:
        for name, advice in _OF_THE_ORDER.items():
            if options.get(name):
                raise TypeError(f"the order says which sample comes when, not {name}=: {advice}")
        if not options.get("in_order", True):
            message = "batches that come in any order have no place to resume at: in_order=True"
            raise ValueError(message)
        samples = dataset if isinstance(dataset, Dataset) else _dataset_of(dataset)
        self._positions = Sampler(
            samples,
            batch_size,
            global_batch_size=global_batch_size,
            shard=shard,
            drop_last=drop_last,
        )
        self._place = Place(self._positions._steps)  # noqa: SLF001 -- what it is there for
        if collate_fn is None:
            convert = _Piped if options.get("num_workers") else _unchanged
            options |= {"sampler": self._positions, "batch_size": None, "collate_fn": convert}
        else:
            options |= {"batch_sampler": self._positions, "collate_fn": collate_fn}
        super().__init__(samples, **options)

    @property
    def step(self) -> int:
        """The step that is handed out next; steps count on from epoch to epoch."""
        return self._place.step

    @property
    def epoch(self) -> int:
        """The epoch of that step; 0 for an infinite order."""
        return self._place.epoch

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        """Begin an epoch, or continue where `load_state_dict` or `seek` has put the loader.

        Raises:
            TypeError: Workers are not forked, and a function cannot be sent to them.
        """
        context = self.multiprocessing_context or multiprocessing
        if self.num_workers and context.get_start_method() != "fork":
            check_pickles((self.dataset, self.collate_fn), "use ingot.Loader, which has threads")
        return _Batches(self)

    def _started(self) -> Iterator[Any]:
        """Return PyTorch's own iterator, from where the running or a new loop continues."""
        self._positions._follow(self._place)  # noqa: SLF001
        return super().__iter__()

    def _forget_workers(self) -> None:
        """Let the next iterator have workers of its own: after an error, some may be dead."""
        self._iterator = None

    def __repr__(self) -> str:
        return f"<ingot.torch.DataLoader at step {self.step}, {self._positions!r}>"

    def seek(self, step: SupportsIndex) -> None:
        """Go to a step, which is handed out next: by the running loop, or by a new one.

        `loader.seek(loader.step)` lets a new loop continue where one was left.

        Raises:
            ValueError: There is no such step.
        """
        self._place.put(step)

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader is: a small dict that can be stored as JSON.

        It counts the samples that were handed out on all ranks, not those that were read ahead,
        and is the same on every rank.
        """
        place = self._place
        return state_of(self._positions.order, place.steps, place.next, place.skipped.ranges)

    def load_state_dict(self, state: Mapping[str, Any], *, allow_other_data: bool = False) -> None:
        """Continue where a loader was, on any number of ranks and workers, with any batch size.

        The rest of that epoch is cut into batches from there on. A running loop continues
        there, too.

        Args:
            state: What `state_dict` of this class or of an `ingot.Loader` has returned, or one
                that `Sampler.load_state_dict` takes.
            allow_other_data: As for `ingot.Loader.load_state_dict`.

        Raises:
            TypeError: It is not a state.
            ValueError: It is the state of another order, or leaves out steps of another size.
        """
        self._positions.load_state_dict(state, allow_other_data=allow_other_data)
        self._place.resume(self._positions._steps, self._positions._skipped.ranges)  # noqa: SLF001
        self._place.put(self._positions.step)


class _Piped:
    """A batch on its way from a worker: what is unpickled of it is the batch, as tensors.

    PyTorch puts each tensor into shared memory of its own and passes a file descriptor, which
    costs the receiver as much as half a megabyte through the pipe. So small tensors go through
    the pipe.
    """

    def __init__(self, batch: Any) -> None:
        self._batch = each_leaf(batch, _piped, in_lists=True)

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return as_tensors, (self._batch,)


def _piped(value: Any, _: str) -> Any:
    """Return a small tensor as an array, and anything else as it is."""
    if type(value) is not torch.Tensor or value.nbytes > _PIPED_BYTES_MAX:
        return value
    is_plain = value.is_cpu and value.layout is torch.strided and value.dtype in _PIPED_TYPES
    return value.numpy() if is_plain and not value.requires_grad and not value.is_neg() else value


def _unchanged(batch: Any) -> Any:
    return batch


def _dataset_of(source: Any) -> Dataset[Any]:
    """Return paths, rows, an order or any other sequence as a data set."""
    first = source[0] if isinstance(source, list) and source else source
    is_known = isinstance(first, str | os.PathLike) or isinstance(source, Source)
    return Dataset(source if is_known else Order.of(source))


class _Batches(Iterator[Any]):
    """The batches of one loop over a data loader, which counts them.

    PyTorch's own iterator has read ahead. So it is replaced by another one if the loader was put
    elsewhere, and after an error, after which it would continue behind the batch that failed.
    """

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self._place = loader._place  # noqa: SLF001 -- this is a part of the loader
        self._loop = self._place.begin()
        self._has_ended = False
        self._start()

    def _start(self) -> None:
        self._moves = self._place.moves
        self._batches: Iterator[Any] | None = self._loader._started()  # noqa: SLF001

    def __next__(self) -> Any:
        if self._has_ended:
            raise StopIteration
        step, stop = self._place.following(self._loop)
        if self._batches is None or self._moves != self._place.moves:
            if stop is not None and step >= stop:
                raise StopIteration
            self._start()
        try:
            batch = next(cast(Iterator[Any], self._batches))
        except StopIteration:
            self._has_ended, self._batches = True, None
            raise
        except BaseException:
            self._batches = None
            self._loader._forget_workers()  # noqa: SLF001
            raise
        self._place.advance(step)
        return batch
