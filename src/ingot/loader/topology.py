"""Which part of each batch is this process's own.

Those who know are asked in this order, and the first who knows decides: `torch.distributed`, if it
is initialized; `jax.distributed`, if it is initialized; the environment variables RANK and
WORLD_SIZE. Nobody is imported for it, and no backend of JAX starts.
"""

import os
import sys
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ingot.order.arguments import integer_of
from ingot.order.description import Description, steps_of, text_of


@runtime_checkable
class Mesh(Protocol):
    """A `torch.distributed.device_mesh.DeviceMesh`, for those without PyTorch."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""

    def size(self) -> int:
        """Return the number of ranks."""

    def get_local_rank(self) -> int:
        """Return the rank of this process in a mesh of one dimension."""


Shard: TypeAlias = Literal["auto"] | tuple[int, int] | Mesh | None


class Topology(NamedTuple):
    """A rank, the number of ranks, and who says so."""

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
            message = (
                f"the device mesh has {shard.ndim} dimensions: pass the one that splits the data, "
                'such as mesh["data"], or ingot.torch.shard_of(mesh, ...) for several'
            )
            raise ValueError(message)
    message = f'shard is "auto", (rank, world), a device mesh or None, not {shard!r:.80}'
    raise TypeError(message)


def _found() -> Topology:
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
        message = f"expected 0 <= rank < world, got rank {rank} of {world}"
        raise ValueError(message)
    return Topology(rank, world, origin)


def refuse_shards(description: Description, world: int) -> None:
    """Refuse an order that is sharded already, if the loader shards it too.

    Raises:
        ValueError: It is.
    """
    for step in steps_of(description):
        if step["kind"] == "shard" and step["world"] > 1 and world > 1:
            message = (
                f"the order has {text_of(step)}, and the loader gives each of {world} ranks its "
                "part of every batch: leave the step out, or pass shard=None"
            )
            raise ValueError(message)
        for part in step.get("parts", ()):
            refuse_shards(part, world)
