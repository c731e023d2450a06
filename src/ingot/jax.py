"""Batches for JAX: laid out over the devices of all processes, with a state for checkpoints."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Self

import numpy.typing as npt

from ingot.extras import requirement
from ingot.loader import Loader
from ingot.loader.arguments import global_batch_size_of
from ingot.loader.frameworks import arrays
from ingot.order import Order
from ingot.order.arguments import Samples

with requirement("jax", "ingot.jax"):
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

__all__ = ["Batches", "shard_of"]


class Batches(Iterator[Any]):
    """Batches of an `ingot.Loader` as arrays of JAX, made in the loader's threads.

    With a sharding, each process reads the samples of its own devices, and the arrays of a batch
    are the global ones: their first dimension is that of all processes together. What is not an
    array of numbers, such as text, has the samples of this process.

    `next(batches)` continues to the end of the epoch. `for batch in batches` is an epoch, as a loop
    over an `ingot.Loader` is; after `load_state_dict`, it is the rest of one.

    Args:
        order: An order, a data set, a reader, a view, or any other sequence of samples.
        batch_size: The number of samples of a step in each process; processes that hold the same
            samples count as one.
        global_batch_size: The number in all processes together, in place of `batch_size`, for
            the same batches on any number of processes.
        sharding: How arrays are laid out over devices. Its first entry is for the samples; an
            array with fewer dimensions than entries uses the first ones. By default, arrays are
            on the default device.
        **options: Other options of `ingot.Loader`, except `to` and `pin_memory`; with a sharding,
            also except `shard`. A sharding needs whole batches: pass `drop_last=True`, or repeat
            the order.

    Raises:
        TypeError: Not exactly one of `batch_size` and `global_batch_size` is given.
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
        order: Samples | Order,
        batch_size: int | None = None,
        *,
        global_batch_size: int | None = None,
        sharding: NamedSharding | None = None,
        **options: Any,  # noqa: ANN401 -- those of a loader
    ) -> None:
        if "to" in options:
            raise TypeError("batches are arrays of JAX: leave out to=, or use ingot.Loader")
        if sharding is not None and "shard" in options:
            raise TypeError("the sharding says which samples this process has: leave out shard=")
        self._sharding = sharding
        if sharding is None:
            self.loader = Loader(
                order, batch_size, global_batch_size=global_batch_size, to="jax", **options
            )
        else:
            _, world = shard_of(sharding, _num_parts(sharding))
            size = global_batch_size_of(batch_size, global_batch_size, world)
            shard = shard_of(sharding, size)
            to = arrays(_layout(sharding, size // world, world))
            self.loader = Loader(order, global_batch_size=size, to=to, shard=shard, **options)
            self._refuse_short_batches(sharding)
        self._loop: Iterator[Any] | None = None

    def _refuse_short_batches(self, sharding: NamedSharding) -> None:
        if not self.loader._place.steps.is_even:  # noqa: SLF001 -- the same library
            raise ValueError(
                f"the last batch of an epoch is shorter than {self.loader.global_batch_size}, and "
                f"a layout over {_num_parts(sharding)} parts needs whole batches: pass "
                "drop_last=True, or repeat the order"
            )

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

    def load_state_dict(self, state: Mapping[str, Any], *, allow_other_data: bool = False) -> None:
        """Continue where a loader was, on any number of processes and devices.

        Args:
            state: What `state_dict` has returned.
            allow_other_data: As for `ingot.Loader.load_state_dict`.

        Raises:
            ValueError: It is the state of another order; the message names the difference. Or
                the rest of the epoch ends with a shorter batch, for which a sharding has no place.
        """
        before = self.loader.state_dict()
        self.loader.load_state_dict(state, allow_other_data=allow_other_data)
        if self._sharding is not None:
            try:
                self._refuse_short_batches(self._sharding)
            except ValueError:
                self.loader.load_state_dict(before, allow_other_data=True)
                raise
        self._loop = None

    def get_state(self) -> bytes:
        """Return the state as bytes, which `grain.checkpoint.CheckpointSave` asks for."""
        return json.dumps(self.state_dict()).encode()

    def set_state(self, state: bytes) -> None:
        """Continue from the state that `get_state` has returned.

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


def shard_of(sharding: NamedSharding, global_batch_size: int) -> tuple[int, int]:
    """Return which part of a batch the devices of this process hold: its number, and of how many.

    Processes that hold the same samples, as in tensor parallelism, have the same part.

    Args:
        sharding: How arrays are laid out over devices.
        global_batch_size: The number of samples of a batch in all processes together.

    Raises:
        TypeError: It is not a `NamedSharding`.
        ValueError: The batch cannot be divided so, or the samples are not one run.
    """
    parts = _num_parts(sharding)
    if global_batch_size % parts:
        raise ValueError(
            f"a batch of {global_batch_size} samples in all processes cannot be divided into "
            f"{parts} equal parts, as {sharding.spec} does: make it a multiple of {parts}"
        )
    first = _cut(sharding, 1)
    found = first.addressable_devices_indices_map((global_batch_size,)).values()
    runs = sorted({rows.indices(global_batch_size)[:2] for (rows,) in found})
    if not runs:
        raise ValueError("no device of the sharding's mesh belongs to this process")
    start, stop = runs[0][0], runs[-1][1]
    size = stop - start
    is_run = all(one[1] == other[0] for one, other in pairwise(runs))
    if not is_run or start % size or global_batch_size % size:
        texts = ", ".join(f"{one} to {other - 1}" for one, other in runs)
        raise ValueError(
            f"the devices of this process hold samples {texts} of {global_batch_size}, expected "
            "one run of the same length for each process: order the devices of the mesh by process"
        )
    return start // size, global_batch_size // size


def _num_parts(sharding: NamedSharding) -> int:
    """Return into how many parts the samples of a batch are divided.

    Raises:
        TypeError: It is not a `NamedSharding`.
    """
    if not isinstance(sharding, NamedSharding):
        raise TypeError(f"expected a jax.sharding.NamedSharding, got {type(sharding).__name__}")
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
            raise ValueError(
                f"an array of shape {own.shape} has no place in a batch of {num_samples} samples "
                "per process: with a sharding, the first dimension of each array counts samples"
            )
        shape = (num_samples * world, *own.shape[1:])
        return jax.make_array_from_process_local_data(_cut(sharding, own.ndim), own, shape)

    return put
