"""Arguments of other loaders, and what to write instead."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = "leave it out: workers are threads"
_ORDER = "an order says which samples come when: Loader(ds.take(indices), batch_size)"
_SHARD = "shard=(rank, world)"

_INSTEAD = {
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
    "worker_init_fn": _THREADS,
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


def refuses_foreign(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function; arguments that only other loaders have raise a helpful error.

    Raises:
        TypeError: There is such an argument; the message says what to write instead.
    """
    known = inspect.signature(function).parameters

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in (one for one in kwargs if one not in known):
            near = get_close_matches(name, [*known, *_INSTEAD], 1)
            if near and near[0] in _INSTEAD:
                message = f"ingot.Loader has no argument {name!r}; instead: {_INSTEAD[near[0]]}"
                raise TypeError(message)
        return function(*args, **kwargs)

    return checked
