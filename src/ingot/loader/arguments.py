"""Arguments of a loader, checked."""

import os
import sys
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from ingot.loader.arrays import arrays
from ingot.loader.steps import Steps
from ingot.loader.tensors import tensors
from ingot.order.arguments import count_of
from ingot.order.order import Order

To: TypeAlias = Literal["numpy", "torch", "jax"] | Callable[[Any], Any]
"""What batches are made of, or the function that makes it of a batch of numpy arrays."""

_WORKERS_MAX = 8
_SAMPLES_MAX = 1 << 27


def collate_of(function: Any) -> Callable[[list[Any]], Any] | None:
    """Return the function that collates, if there is one.

    Raises:
        TypeError: It is not a function.
    """
    if function is not None and not callable(function):
        message = f"collate is a function of a list of samples, not {function!r:.80}"
        raise TypeError(message)
    return function  # type: ignore[no-any-return]


def one_of(name: str, found: Any, *known: str) -> str:
    """Return an option that is one of several words.

    Raises:
        ValueError: It is another one.
    """
    if found not in known:
        texts = " or ".join(f'"{one}"' for one in known)
        message = f"{name} is {texts}, not {found!r:.80}"
        raise ValueError(message)
    return str(found)


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
        message = (
            "expected batch_size=, the number of samples of a step on each rank, or "
            f"global_batch_size=, the number on all ranks together, got {found}"
        )
        raise TypeError(message)
    if count > _SAMPLES_MAX:
        message = f"a step has at most {_SAMPLES_MAX:,} samples on all ranks, got {count:,}"
        raise ValueError(message)
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
        message = 'pin_memory requires to="torch"'
        raise ValueError(message)
    if callable(to):
        return to
    given: object = to
    if given == "tf":
        message = 'to is "numpy" or "torch" or "jax", not "tf": ingot.tf.dataset(...) feeds tf.data'
        raise ValueError(message)
    match one_of("to", to, "numpy", "torch", "jax"):
        case "torch":
            return tensors(pin_memory=pin_memory)
        case "jax":
            return arrays()
    return None


def steps_of(order: Order, batch_size: int, world: int, *, drop_last: bool) -> Steps:
    """Return the steps, each of which has a sample for every rank.

    Raises:
        ValueError: There are too few samples.
    """
    length = None if order.is_infinite else len(order)
    steps = Steps(batch_size, length, drop_last)
    if length == 0:
        message = "the order has no samples"
        raise ValueError(message)
    if not steps.per_epoch and length is not None:
        message = (
            f"an order of {length} samples has no whole batch of {batch_size} on all ranks: pass "
            "drop_last=False, or repeat the order"
        )
        raise ValueError(message)
    if batch_size < world:
        message = (
            f"global_batch_size={batch_size} has no sample for each of {world} ranks: pass at "
            f"least {world}, or batch_size=, the number of samples on each rank"
        )
        raise ValueError(message)
    return steps


def threads_of(workers: int | None, processes: int, prefetch: int | None) -> tuple[int, int]:
    """Return the number of threads, and of batches to read ahead.

    Raises:
        ValueError: Both threads and processes are asked for.
    """
    if processes:
        if workers is not None:
            message = (
                f"workers={workers} asks for threads and processes={processes} for processes: "
                "pass one of them"
            )
            raise ValueError(message)
        count = processes
    else:
        count = min(_num_cores(), _WORKERS_MAX) if workers is None else count_of(workers, "workers")
    ahead = max(2 * count, 2) if prefetch is None else count_of(prefetch, "prefetch", 1)
    return count, ahead


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
