"""Arguments of a loader, checked."""

import os
import sys
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ingot.loader.frameworks import arrays, tensors
from ingot.loader.steps import Steps
from ingot.order.arguments import count_of, integer_of, one_of
from ingot.order.description import Description, steps_of, text_of
from ingot.order.order import Order

To: TypeAlias = Literal["numpy", "torch", "jax"] | Callable[[Any], Any]
"""What batches are made of, or the function that makes it of a batch of numpy arrays."""

_WORKERS_MAX = 8
_SAMPLES_MAX = 1 << 27

_ORDER = "an order says which samples come when: Loader(ds.take(indices), batch_size)"
_SHARD = "shard=(rank, world)"

INSTEAD = {
    "dataset": "order=, or the first argument",
    "source": "order=, or the first argument",
    "shuffle": "Loader(ds.shuffle(seed=0), batch_size): a shuffle is a part of the order",
    "seed": "Loader(ds.shuffle(seed=0), batch_size): a shuffle is a part of the order",
    "generator": "ds.shuffle(seed=...); functions of map take `rng`",
    "sampler": _ORDER,
    "batch_sampler": _ORDER,
    "batch": "batch_size=, the number of samples on each rank",
    "num_workers": "workers= for threads, or processes= for processes",
    "worker_count": "workers=",
    "prefetch_factor": "prefetch=, the number of batches ahead of all workers together",
    "collate_fn": "collate=",
    "transform": "Loader(ds.map(function), batch_size)",
    "fns": "Loader(ds.map(function), batch_size)",
    "worker_init_fn": "leave it out: workers are threads",
    "multiprocessing_context": "processes=n, started as multiprocessing.set_start_method says",
    "persistent_workers": "leave it out: workers stay from epoch to epoch",
    "timeout": "leave it out: a worker that fails raises its error at its step",
    "in_order": "leave it out: batches always come in order",
    "pin_memory_device": 'to="torch", pin_memory=True',
    "epochs": "ds.repeat(n), or one loop for each epoch",
    "num_epochs": "ds.repeat(n), or one loop for each epoch",
    "device": 'to="torch", then move the batch: tensor.to(device)',
    "batchsize": "batch_size=",
    "rank": _SHARD,
    "world_size": _SHARD,
    "shard_id": _SHARD,
    "num_shards": _SHARD,
}
"""Arguments of other loaders, and what to write instead."""


@runtime_checkable
class Mesh(Protocol):
    """A `torch.distributed.device_mesh.DeviceMesh`, which may not be installed."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""

    def size(self) -> int:
        """Return the number of ranks."""

    def get_local_rank(self) -> int:
        """Return the rank of this process in a mesh of one dimension."""


Shard: TypeAlias = Literal["auto"] | tuple[int, int] | Mesh | None


def collate_of(function: Any) -> Callable[[list[Any]], Any] | None:
    """Return the function that collates, if there is one.

    Raises:
        TypeError: It is not a function.
    """
    if function is not None and not callable(function):
        raise TypeError(f"collate is a function of a list of samples, not {function!r:.80}")
    return function  # type: ignore[no-any-return]


def global_batch_size_of(batch_size: int | None, global_batch_size: int | None, world: int) -> int:
    """Return the number of samples of a step on all ranks together.

    Args:
        batch_size: The number of samples of a step on each rank, or None.
        global_batch_size: The number on all ranks together, or None.
        world: The number of ranks.

    Raises:
        TypeError: Both are given, or none, or it is not an integer.
        ValueError: It is less than 1, or more than the engine reads at once.
    """
    if batch_size is not None and global_batch_size is None:
        count = count_of(batch_size, "batch_size", 1) * world
    elif batch_size is None and global_batch_size is not None:
        count = count_of(global_batch_size, "global_batch_size", 1)
    else:
        found = "neither" if batch_size is None else "both"
        raise TypeError(
            "expected batch_size=, the number of samples of a step on each rank, or "
            f"global_batch_size=, the number on all ranks together, got {found}"
        )
    if count > _SAMPLES_MAX:
        raise ValueError(f"a step has at most {_SAMPLES_MAX:,} samples on all ranks, got {count:,}")
    return count


def part_of(batch_size: int, rank: int, world: int) -> int:
    """Return how many samples of a whole batch one of several ranks has."""
    return (rank + 1) * batch_size // world - rank * batch_size // world


def converter_of(to: To, *, pin_memory: bool) -> Callable[[Any], Any] | None:
    """Return what is applied to each batch.

    Raises:
        ValueError: It is not known, or has no memory to pin.
        ModuleNotFoundError: The library is not installed.
    """
    if pin_memory and to != "torch":
        raise ValueError('pin_memory requires to="torch"')
    if callable(to):
        return to
    given: object = to
    if given == "tf":
        message = 'to is "numpy" or "torch" or "jax", not "tf": ingot.tf.dataset(...) feeds tf.data'
        raise ValueError(message)
    match one_of("to", to, ("numpy", "torch", "jax")):
        case "torch":
            return tensors(pin_memory=pin_memory)
        case "jax":
            return arrays()
    return None


def steps_over(
    order: Order,
    batch_size: int | None,
    global_batch_size: int | None,
    world: int,
    *,
    drop_last: bool,
) -> Steps:
    """Return the steps, each of which has a sample for every rank.

    Raises:
        TypeError: Not exactly one of both sizes is given.
        ValueError: There are too few samples, or the order is sharded already.
    """
    size = global_batch_size_of(batch_size, global_batch_size, world)
    length = None if order.is_infinite else len(order)
    steps = Steps(size, length, bool(drop_last))
    if length == 0:
        raise ValueError("the order has no samples")
    if not steps.per_epoch and length is not None:
        raise ValueError(
            f"an order of {length} samples has no whole batch of {size} on all ranks: pass "
            "drop_last=False, or repeat the order"
        )
    if size < world:
        raise ValueError(
            f"global_batch_size={size} has no sample for each of {world} ranks: pass at "
            f"least {world}, or batch_size=, the number of samples on each rank"
        )
    _refuse_shards(order.describe(data=False), world)
    return steps


def threads_of(workers: int | None, processes: int, prefetch: int | None) -> tuple[int, int]:
    """Return the number of threads, and of batches to read ahead.

    Raises:
        ValueError: Both threads and processes are asked for.
    """
    if processes:
        if workers is not None:
            raise ValueError(
                f"workers={workers} asks for threads and processes={processes} for processes: "
                "pass one of them"
            )
        count = processes
    else:
        count = min(_num_cores(), _WORKERS_MAX) if workers is None else count_of(workers, "workers")
    ahead = max(2 * count, 2) if prefetch is None else count_of(prefetch, "prefetch", 1)
    return count, ahead


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


class Topology(NamedTuple):
    """A rank, the number of ranks, and where they come from."""

    rank: int
    world: int
    origin: str

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.world} ({self.origin})"


def topology_of(shard: Shard | Any) -> Topology:
    """Return rank and number of ranks.

    Args:
        shard: These two; a device mesh of one dimension; None for a single rank; "auto" asks
            `torch.distributed`, then `jax.distributed`, then the environment variables RANK and
            WORLD_SIZE.

    Raises:
        TypeError: It is something else.
        ValueError: The rank is not one of the ranks, or the mesh has several dimensions.
    """
    match shard:
        case None:
            return Topology(0, 1, "given")
        case "auto":
            return _found()
        case (rank, world):
            numbers = integer_of(rank, "a rank"), integer_of(world, "a number of ranks")
            return _checked(*numbers, "given")
        case Mesh(ndim=1):
            return Topology(shard.get_local_rank(), shard.size(), "device mesh")
        case Mesh():
            raise ValueError(
                f"the device mesh has {shard.ndim} dimensions: pass the one that splits the data, "
                'such as mesh["data"], or ingot.torch.shard_of(mesh, ...) for several'
            )
    raise TypeError(f'shard is "auto", (rank, world), a device mesh or None, not {shard!r:.80}')


def _found() -> Topology:
    """Return what the first of these says that knows; none is imported, no backend starts."""
    return _of_torch() or _of_jax() or _of_environment()


def _of_torch() -> Topology | None:
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return None
    distributed = torch.distributed
    if not distributed.is_initialized():
        return None
    ranks = distributed.get_rank(), distributed.get_world_size()
    return Topology(*ranks, "torch.distributed")


def _of_jax() -> Topology | None:
    jax: Any = sys.modules.get("jax")
    if jax is None or not jax.distributed.is_initialized():
        return None
    # `jax.process_index()` would start a backend, which waits for all other processes.
    state = sys.modules["jax._src.distributed"].global_state
    return Topology(state.process_id, state.num_processes, "jax.distributed")


def _of_environment() -> Topology:
    given = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE")}
    if not any(given.values()):
        return Topology(0, 1, "no ranks found")
    texts = ", ".join(f"{name}={value or ''}" for name, value in given.items())
    try:
        rank, world = (int(value or "") for value in given.values())
    except ValueError:
        message = f"the environment has {texts}: expected two integers; shard=(rank, world) is safe"
        raise ValueError(message) from None
    return _checked(rank, world, "RANK and WORLD_SIZE")


def _checked(rank: int, world: int, origin: str) -> Topology:
    if not 0 <= rank < world:
        raise ValueError(f"expected 0 <= rank < world, got rank {rank} of {world}")
    return Topology(rank, world, origin)


def _refuse_shards(description: Description, world: int) -> None:
    """Refuse an order that is sharded already, if the loader shards it too.

    Raises:
        ValueError: It is.
    """
    for step in steps_of(description):
        if step["kind"] == "shard" and step["world"] > 1 and world > 1:
            raise ValueError(
                f"the order has {text_of(step)}, and the loader gives each of {world} ranks its "
                "part of every batch: leave the step out, or pass shard=None"
            )
        for part in step.get("parts", ()):
            _refuse_shards(part, world)
