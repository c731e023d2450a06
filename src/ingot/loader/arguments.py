"""Arguments of a loader, checked."""

import os
import sys
from typing import Any

from ingot.loader.steps import Steps
from ingot.order.arguments import count_of
from ingot.order.order import Order

_WORKERS_MAX = 8


def order_of(order: Any) -> Order:
    """Return an order of what users pass.

    Raises:
        TypeError: It is a path, or no sequence.
    """
    if isinstance(order, str | os.PathLike):
        message = f"expected a data set or an order, got a path: ingot.open({order!r}) opens it"
        raise TypeError(message)
    return Order.of(order)


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
            f"an order of {length} samples has no whole batch of {batch_size}: pass "
            "drop_last=False, or repeat the order"
        )
        raise ValueError(message)
    if batch_size < world:
        message = (
            f"a batch of {batch_size} has no sample for each of {world} ranks; batch_size is that "
            "of all ranks together"
        )
        raise ValueError(message)
    if steps.last_size < world:
        message = (
            f"the last batch of an epoch has {steps.last_size} samples, not one for each of "
            f"{world} ranks: pass drop_last=True"
        )
        raise ValueError(message)
    return steps


def threads_of(workers: int | None, prefetch: int | None) -> tuple[int, int]:
    """Return the number of threads, and of batches to read ahead."""
    count = min(_num_cores(), _WORKERS_MAX) if workers is None else count_of(workers, "workers")
    ahead = max(2 * count, 2) if prefetch is None else count_of(prefetch, "prefetch", 1)
    return count, ahead


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
