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


def batch_size_of(number: int) -> int:
    """Return the number of samples of a batch.

    Raises:
        TypeError: It is not an integer.
        ValueError: It is less than 1, or more than the engine reads at once.
    """
    count = count_of(number, "batch_size", 1)
    if count > _SAMPLES_MAX:
        message = f"batch_size is at most {_SAMPLES_MAX:,}, got {count:,}"
        raise ValueError(message)
    return count


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
