"""Batches for JAX: laid out over the devices of all processes, with a state for checkpoints."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy.typing as npt

from ingot.extras import requirement
from ingot.loader import Loader
from ingot.loader.arrays import arrays
from ingot.order import Order

with requirement("jax", "ingot.jax"):
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

__all__ = ["Batches", "shard_of"]


class Batches(Iterator[Any]):
    """Batches of an `ingot.Loader` as arrays of JAX, made in the loader's threads.

    With a sharding, each process reads the samples of its own devices, and the arrays of a batch
    are the global ones: their first dimension is that of all processes together. What is not an
    array of numbers, such as text, has the samples of this process.

    `for batch in batches` goes on to the end of the epoch, and the next loop is the next epoch.

    Args:
        order: An order, a data set, a reader, a view, or any other sequence of samples.
        batch_size: The number of samples of a step, on all processes together.
        sharding: How arrays are laid out over devices. Its first entry is for the samples; an
            array with fewer dimensions than entries uses the first ones. By default, arrays are
            on the default device.
        **options: Other options of `ingot.Loader`, except `to` and `pin_memory`; with a sharding,
            also except `shard`.

    Raises:
        ValueError: The devices of this process do not hold one run of the samples of a batch, or
            a batch cannot be divided among the devices.

    Attributes:
        loader: The loader.

    Example:
        >>> sharding = NamedSharding(mesh, PartitionSpec("data"))  # doctest: +SKIP
        >>> batches = ingot.jax.Batches(order, 256, sharding=sharding)  # doctest: +SKIP
    """

    loader: Loader

    def __init__(
        self,
        order: Sequence[Any] | Order,
        batch_size: int,
        *,
        sharding: NamedSharding | None = None,
        **options: Any,  # noqa: ANN401 -- those of a loader
    ) -> None:
        if "to" in options:
            message = "batches are arrays of JAX: leave out to=, or use ingot.Loader"
            raise TypeError(message)
        if sharding is not None and "shard" in options:
            message = "the sharding says which samples this process has: leave out shard="
            raise TypeError(message)
        if sharding is None:
            self.loader = Loader(order, batch_size, to="jax", **options)
        else:
            rank, world = shard_of(sharding, batch_size)
            to = arrays(_layout(sharding, batch_size // world, world))
            self.loader = Loader(order, batch_size, to=to, shard=(rank, world), **options)
            self._refuse_short_batches(sharding)
        self._loop: Iterator[Any] | None = None

    def _refuse_short_batches(self, sharding: NamedSharding) -> None:
        order = self.loader.order
        rest = 0 if order.is_infinite else len(order) % self.loader.batch_size
        if rest and len(self.loader) * self.loader.batch_size > len(order):
            message = (
                f"the last batch of an epoch has {rest} samples, expected {self.loader.batch_size} "
                f"for a layout over {_num_parts(sharding)} parts: pass drop_last=True"
            )
            raise ValueError(message)

    def __iter__(self) -> Self:
        self._loop = iter(self.loader)
        return self

    def __next__(self) -> Any:  # noqa: ANN401 -- batches are of any type
        if self._loop is None:
            self._loop = iter(self.loader)
        return next(self._loop)

    def state_dict(self) -> dict[str, Any]:
        """Return where the loader is: a small dict that can be stored as JSON.

        It is the same in every process. Orbax saves it as JSON.
        """
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any], *, check_data: bool = True) -> None:
        """Go on where a loader was, on any number of processes and devices.

        Args:
            state: What `state_dict` has returned.
            check_data: As for `ingot.Loader.load_state_dict`.

        Raises:
            ValueError: It is the state of another order; the message names the difference.
        """
        self.loader.load_state_dict(state, check_data=check_data)
        self._loop = None

    def get_state(self) -> bytes:
        """Return the state as bytes, which `grain.checkpoint.CheckpointSave` asks for."""
        return json.dumps(self.state_dict()).encode()

    def set_state(self, state: bytes) -> None:
        """Go on from the state that `get_state` has returned.

        Raises:
            ValueError: It is the state of another order; the message names the difference.
        """
        self.load_state_dict(json.loads(state))

    def start_prefetch(self) -> None:
        """Begin to read ahead, before the first batch is asked for."""
        self.loader.start()

    def close(self) -> None:
        """End the threads of the loader and wait for them."""
        self.loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ingot.jax.Batches of {self.loader!r}>"


def shard_of(sharding: NamedSharding, batch_size: int) -> tuple[int, int]:
    """Return which part of a batch the devices of this process hold: its number, and of how many.

    Processes that hold the same samples, as in tensor parallelism, have the same part.

    Raises:
        TypeError: It is not a `NamedSharding`.
        ValueError: The batch cannot be divided so, or the samples are not one run.
    """
    if not isinstance(sharding, NamedSharding):
        message = f"expected a jax.sharding.NamedSharding, got {type(sharding).__name__}"
        raise TypeError(message)
    parts = _num_parts(sharding)
    if batch_size % parts:
        message = (
            f"a batch of {batch_size} samples cannot be divided into {parts} equal parts, as "
            f"{sharding.spec} does: make batch_size a multiple of {parts}"
        )
        raise ValueError(message)
    first = _cut(sharding, 1)
    found = first.addressable_devices_indices_map((batch_size,)).values()
    runs = sorted({rows.indices(batch_size)[:2] for (rows,) in found})
    if not runs:
        message = "no device of the sharding's mesh belongs to this process"
        raise ValueError(message)
    start, stop = runs[0][0], runs[-1][1]
    size = stop - start
    is_run = all(one[1] == other[0] for one, other in pairwise(runs))
    if not is_run or start % size or batch_size % size:
        texts = ", ".join(f"{one} to {other - 1}" for one, other in runs)
        message = (
            f"the devices of this process hold samples {texts} of {batch_size}, expected one run "
            "of the same length for each process: order the devices of the mesh by process"
        )
        raise ValueError(message)
    return start // size, batch_size // size


def _num_parts(sharding: NamedSharding) -> int:
    """Return into how many parts the samples of a batch are divided."""
    entry = sharding.spec[0] if len(sharding.spec) else None
    axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
    return math.prod(sharding.mesh.shape[axis] for axis in axes)


def _cut(sharding: NamedSharding, ndim: int) -> NamedSharding:
    """Return the sharding of an array of some dimensions."""
    spec = PartitionSpec(*sharding.spec[:ndim])
    return NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)


def _layout(
    sharding: NamedSharding, num_samples: int, world: int
) -> Callable[[npt.NDArray[Any]], jax.Array]:
    """Return a function that makes the global array of one that has this process's samples."""

    def put(own: npt.NDArray[Any]) -> jax.Array:
        if own.shape[:1] != (num_samples,):
            message = (
                f"an array of shape {own.shape} has no place in a batch of {num_samples} samples "
                "per process: with a sharding, the first dimension of each array counts samples"
            )
            raise ValueError(message)
        shape = (num_samples * world, *own.shape[1:])
        return jax.make_array_from_process_local_data(_cut(sharding, own.ndim), own, shape)

    return put
