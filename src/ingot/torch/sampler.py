"""Which samples of an order make a batch on which rank, for loaders of PyTorch."""

from collections.abc import Iterator, Mapping
from typing import Any, SupportsIndex

import torch.utils.data
from torch.distributed.device_mesh import DeviceMesh

from ingot.loader.arguments import Shard, part_of, steps_over, topology_of
from ingot.loader.state import place_in, state_of
from ingot.loader.steps import Place, Skipped
from ingot.order import Order
from ingot.order.arguments import Samples, count_of
from ingot.torch.dataset import Dataset, Positions

_ENDED = "epoch_ended"


class Sampler(torch.utils.data.Sampler[Positions]):
    """The batches of an order, as positions, for a data loader of PyTorch.

    It goes with a `Dataset` of the same order: as `sampler=` with `batch_size=None`, the worker
    reads each batch as tensors with one native call; as `batch_sampler=`, PyTorch collates
    samples. Batches are those of `ingot.Loader`.

    A loop over the data loader is an epoch, and the next loop is the next epoch, even if a loop
    was left before its end. After `seek` or `load_state_dict`, the next loop continues from there
    to the end of that epoch. A data loader with workers asks for batches before it
    hands them out, so a sampler cannot know how many you got: `ingot.torch.DataLoader` and
    torchdata's `StatefulDataLoader` count them, and with other loaders you do, see `state_at`.

    Args:
        order: A `Dataset`, an order, a data set, a reader or a view.
        batch_size: The number of samples of a step on each rank.
        global_batch_size: The number on all ranks together, in place of `batch_size`, for the
            same batches on any number of ranks.
        shard: Rank and number of ranks, as for `ingot.Loader`.
        drop_last: Whether to leave out samples after the last whole batch of an epoch. The last
            batch is shared among ranks as that of `ingot.Loader` is.

    Raises:
        TypeError: The order is not made of samples, or not exactly one of `batch_size` and
            `global_batch_size` is given.
        ValueError: The order has too few samples for a batch, or a batch too few for the ranks.

    Attributes:
        order: The order.
        batch_size: The number of samples of a whole step on this rank.
        global_batch_size: The number on all ranks together.
        rank: The rank of this process.
        world: The number of ranks.

    Example:
        >>> dataset = ingot.torch.Dataset(ds.shuffle(seed=0))  # doctest: +SKIP
        >>> sampler = ingot.torch.Sampler(dataset, batch_size=64)  # doctest: +SKIP
        >>> loader = StatefulDataLoader(
        ...     dataset, sampler=sampler, batch_size=None, num_workers=4
        ... )  # doctest: +SKIP
    """

    __module__ = "ingot.torch"

    def __init__(
        self,
        order: "Dataset[Any] | Order | Samples",
        batch_size: int | None = None,
        *,
        global_batch_size: int | None = None,
        shard: Shard = "auto",
        drop_last: bool = False,
    ) -> None:
        self.order = Order.of(order.source if isinstance(order, Dataset) else order)
        self._topology = topology_of(shard)
        self.rank, self.world, _ = self._topology
        sizes = batch_size, global_batch_size
        self._steps = steps_over(self.order, *sizes, self.world, drop_last=drop_last)
        self.global_batch_size = self._steps.batch_size
        self.batch_size = part_of(self._steps.batch_size, self.rank, self.world)
        self._skipped = Skipped()
        self._step: int | None = 0

    @property
    def step(self) -> int:
        """The step at which the next loop begins; steps count on from epoch to epoch.

        Raises:
            RuntimeError: A loop over an infinite order was begun, and `seek` was not called.
        """
        if self._step is None:
            raise RuntimeError(
                "a sampler does not know where a loop over an infinite order was left: call "
                "seek(step) before the next loop, or use ingot.torch.DataLoader, which counts"
            )
        return self._skipped.first_from(self._step)

    @property
    def epoch(self) -> int:
        """The epoch of that step; 0 for an infinite order."""
        return self._steps.epoch_of(self.step)

    def __len__(self) -> int:
        """Return the number of steps of an epoch."""
        return self._steps.num_per_epoch()

    def __iter__(self) -> Iterator[Positions]:
        """Return the batches from `step` to the end of its epoch."""
        return _Batches(self)

    def seek(self, step: SupportsIndex) -> None:
        """Begin the next loop at a step.

        Raises:
            ValueError: There is no such step.
        """
        number = self._steps.checked(step)
        self._steps = self._steps.sought(number)
        self._step = number

    def _follow(self, place: Place) -> None:
        """Begin the next loop where a loader begins or continues its own."""
        self._steps = place.steps
        self._skipped.set(place.skipped.ranges)
        self._step, _ = place.upcoming

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Begin the next loop at the start of an epoch, or where it is, if that is in this epoch.

        Frameworks call it before each epoch, as they do with PyTorch's `DistributedSampler`; a
        state that was loaded stays in effect.
        """
        number = count_of(epoch, "epoch")
        if self._steps.per_epoch is not None and self.epoch != number:
            self.seek(number * self._steps.per_epoch)

    def state_at(self, step: SupportsIndex) -> dict[str, Any]:
        """Return the state after the batches before a step: a small dict that JSON can store.

        It is what `state_dict` of an `ingot.Loader` at that step returns, on every rank.

        Args:
            step: The step to be handed out next. With a data loader that does not count, count
                yourself: `for step, batch in enumerate(loader, sampler.step)` has got all before
                `step + 1` at the end of its body.
        """
        return state_of(self.order, self._steps, self._steps.checked(step), self._skipped.ranges)

    def load_state_dict(self, state: Mapping[str, Any], *, allow_other_data: bool = False) -> None:
        """Begin the next loop where a loader was, on any number of ranks and workers.

        Args:
            state: What `state_dict` of an `ingot.Loader`, of an `ingot.torch.DataLoader` or of
                a `StatefulDataLoader` with such a sampler has returned, or `state_at`.
            allow_other_data: As for `ingot.Loader.load_state_dict`.

        Raises:
            TypeError: It is not a state.
            ValueError: It is the state of another order, or leaves out steps of another size.
        """
        own, more = state_in(state)
        self._steps, skipped = place_in(
            own, self.order, self._steps, allow_other_data=allow_other_data
        )
        self._skipped.set(skipped)
        step = self._steps.first
        for _ in range(more):
            step = self._skipped.after(self._skipped.first_from(step))
        self._step = step

    def __repr__(self) -> str:
        return (
            f"<ingot.torch.Sampler of {self.batch_size} samples on this rank and "
            f"{self.global_batch_size} on all ranks, {self._topology}, of {self.order!r}>"
        )


class _Batches(Iterator[Positions]):
    """The batches of a sampler in one loop, which begins with the first of them.

    A `StatefulDataLoader` saves its state along with each batch that it asks for, and restores
    it in a new one.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._steps = sampler._steps  # noqa: SLF001 -- this is a part of the sampler
        self._next: int | None = None
        self._stop: int | None = None

    def __next__(self) -> Positions:
        sampler = self._sampler
        if self._next is None:
            self._next, self._steps = sampler.step, sampler._steps  # noqa: SLF001
            self._stop = sampler._step = self._steps.end_of_epoch(self._next)  # noqa: SLF001
        if self._stop is not None and self._next >= self._stop:
            raise StopIteration
        start, stop = self._steps.share(self._next, sampler.rank, sampler.world)
        self._next = sampler._skipped.after(self._next)  # noqa: SLF001
        return Positions(start, stop)

    def state_dict(self) -> dict[str, Any]:
        step = self._sampler.step if self._next is None else self._next
        has_ended = self._next is not None and self._stop is not None and self._next >= self._stop
        return self._sampler.state_at(step) | {_ENDED: has_ended}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._sampler.load_state_dict(state)
        if state.get(_ENDED):
            self._next = self._stop = self._sampler.step


def state_in(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    """Return the state of a sampler inside that of a loader, and how many steps it is behind."""
    match state:
        case {
            "_snapshot": {"_main_snapshot": {"_sampler_iter_state": Mapping() as own}},
            "_steps_since_snapshot": int(more),
        }:
            return own, more
        case {"_sampler_iter_state": Mapping() as own}:
            return own, 0
    return state, 0


def shard_of(mesh: DeviceMesh, *dimensions: str) -> tuple[int, int]:
    """Return rank and number of ranks among which data is split, for `shard=`.

    Ranks that differ only in other dimensions, such as those of tensor parallelism, get the same
    data.

    Args:
        mesh: A device mesh.
        dimensions: The names of its dimensions that split the data, the outer ones first. A mesh
            of one dimension needs none.

    Raises:
        ValueError: The mesh has no such dimension, or has several and none is named.

    Example:
        >>> mesh = init_device_mesh(
        ...     "cuda", (2, 8, 4), mesh_dim_names=("replicate", "shard", "tensor")
        ... )  # doctest: +SKIP
        >>> shard = ingot.torch.shard_of(mesh, "replicate", "shard")  # doctest: +SKIP
    """
    if not dimensions:
        return topology_of(mesh)[:2]
    names = mesh.mesh_dim_names or ()
    rank, world = 0, 1
    for name in dimensions:
        if name not in names:
            found = ", ".join(map(repr, names)) or "no names"
            raise ValueError(f"the mesh has no dimension {name!r}, it has {found}")
        size = mesh.size(names.index(name))
        rank, world = rank * size + mesh.get_local_rank(name), world * size
    return rank, world
