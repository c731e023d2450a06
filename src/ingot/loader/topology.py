"""Which part of each batch is this process's own."""

import operator
import os
import sys
from typing import Any, Literal, TypeAlias

from ingot.order.description import Description, steps_of, text_of

Shard: TypeAlias = Literal["auto"] | tuple[int, int] | None


def topology_of(shard: Shard | Any) -> tuple[int, int]:
    """Return rank and number of ranks.

    Args:
        shard: These two; None for a single rank; "auto" asks `torch.distributed`, then the
            environment variables RANK and WORLD_SIZE.

    Raises:
        TypeError: It is something else.
        ValueError: The rank is not one of the ranks.
    """
    match shard:
        case None:
            return 0, 1
        case "auto":
            return _found()
        case (rank, world):
            return _checked(operator.index(rank), operator.index(world))
    message = f'shard is "auto", (rank, world) or None, not {shard!r:.80}'
    raise TypeError(message)


def _found() -> tuple[int, int]:
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available():
        distributed = torch.distributed
        if distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    given = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE")}
    if not any(given.values()):
        return 0, 1
    texts = ", ".join(f"{name}={value or ''}" for name, value in given.items())
    try:
        rank, world = (int(value or "") for value in given.values())
    except ValueError:
        message = f"the environment has {texts}: expected two integers; shard=(rank, world) is safe"
        raise ValueError(message) from None
    return _checked(rank, world)


def _checked(rank: int, world: int) -> tuple[int, int]:
    if not 0 <= rank < world:
        message = f"expected 0 <= rank < world, got rank {rank} of {world}"
        raise ValueError(message)
    return rank, world


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
