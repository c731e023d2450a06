"""`granular.Loader`: batches of a source, read ahead."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.compat.granular.sources import convert
from ingot.compat.granular.utils import Closing

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

_PLAIN = (bool, int, float, complex)


class Batch:
    """Arrays that are being filled, and the jobs that fill them."""

    def __init__(self, arrays: Arrays, jobs: list["Future[None]"]) -> None:
        self._arrays = arrays
        self._jobs = jobs

    def result(self) -> Arrays:
        """Wait until the arrays are full, and return them."""
        for job in self._jobs:
            job.result()
        return self._arrays

    def cancel(self) -> None:
        """Stop filling."""
        for job in self._jobs:
            job.cancel()


class Loader(Closing):
    """An infinite stream of batches of a source, in the order of steps.

    Threads make the datapoints. The state is only the step: you may load it with another number
    of workers, shards or datapoints per batch. When the program ends, workers finish what they
    have started, unless the loader is closed.

    Args:
        source: A function that takes the step and returns a dict of arrays or numbers, which
            always have the same shapes.
        batch: The number of datapoints in a batch.
        prefetch: The number of batches to make ahead.
        workers: The number of threads; with 0 each batch is made when it is requested.
        recycle_after: Accepted and ignored: each batch has its own arrays.
        shard_id: The part of each step that this loader makes.
        num_shards: The number of parts.
        mp: Accepted and ignored: there are no processes.
        fns: Refused: see `sources.Transform`.
        shuffle: Refused: see `sources.Epochs`.
    """

    def __init__(
        self,
        source: Any,
        batch: int,
        prefetch: int = 8,
        workers: int = 32,
        recycle_after: int | bool = False,
        shard_id: int = 0,
        num_shards: int = 1,
        mp: object = None,
        *,
        fns: Iterable[Callable[..., Any]] = (),
        shuffle: object = None,
    ) -> None:
        super().__init__()
        del recycle_after, mp
        if tuple(fns) or shuffle is not None:
            message = (
                "the loader neither transforms nor shuffles: pass "
                "sources.Transform(source, fn, seed) or sources.Epochs(source, shuffle, seed)"
            )
            raise TypeError(message)
        if batch < 1 or workers < 0 or prefetch < 0 or not 0 <= shard_id < num_shards:
            message = (
                "batch must be 1 or more, prefetch and workers 0 or more, shard_id below num_shards"
            )
            raise ValueError(message)
        self.source = convert(source)
        self.batch = batch
        self.prefetch = prefetch
        self.workers = workers
        self.shard_id = shard_id
        self.num_shards = num_shards
        self.step = 0
        self.consumed = 0
        self._batches: deque[Batch] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._stop = threading.Event()

    @cached_property
    def spec(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """The dtype and the shape of each value, from the first datapoint."""
        values = {key: np.asarray(value) for key, value in _dict(self.source(0), 0).items()}
        return {key: (value.dtype, value.shape) for key, value in values.items()}

    def __iter__(self) -> Self:
        self._check_open()
        return self

    def __next__(self) -> Arrays:
        """Return the next batch.

        Raises:
            RuntimeError: A datapoint could not be made.
        """
        self._check_open()
        if self.workers == 0:
            self.step = self.consumed
            batch = self._request()
        else:
            if os.getpid() != self._process:
                self._start_over(self.consumed)
            while len(self._batches) <= self.prefetch:
                self._batches.append(self._request())
            batch = self._batches[0]
        arrays = batch.result()
        if self._batches:
            self._batches.popleft()
        self.consumed += self.batch * self.num_shards
        return arrays

    def save(self) -> dict[str, int]:
        """Return the state: the next step."""
        return {"step": self.consumed}

    def load(self, d: Mapping[str, int]) -> None:
        """Resume from a state."""
        self._start_over(int(d["step"]))

    def _start_over(self, step: int) -> None:
        self._end()
        self._process = os.getpid()
        self._stop = threading.Event()
        self.consumed = self.step = step

    def _end(self) -> None:
        self._stop.set()
        # In the child of a fork, the threads of the parent do not exist, so do not wait for them.
        if self._pool is not None and os.getpid() == self._process:
            for batch in self._batches:
                batch.cancel()
            self._pool.shutdown(wait=True)
        self._pool = None
        self._batches.clear()

    def _close(self) -> None:
        self._end()

    def _request(self) -> Batch:
        arrays = {
            key: np.empty((self.batch, *shape), dtype) for key, (dtype, shape) in self.spec.items()
        }
        first = self.step + self.shard_id * self.batch
        self.step += self.batch * self.num_shards
        if self.workers == 0:
            self._fill(arrays, first, range(self.batch))
            return Batch(arrays, [])
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers, "ingot-loader")
        share = -(-self.batch // self.workers)
        parts = [range(k, min(k + share, self.batch)) for k in range(0, self.batch, share)]
        jobs = [self._pool.submit(self._fill, arrays, first, part) for part in parts]
        return Batch(arrays, jobs)

    def _fill(self, arrays: Arrays, first: int, places: range) -> None:
        stop = self._stop
        for place in places:
            if stop.is_set():
                return
            step = first + place
            try:
                _put(arrays, place, _dict(self.source(step), step))
            except BaseException as error:
                message = f"the datapoint of step {step} could not be made: {error!r}"
                raise RuntimeError(message) from error


def _dict(datapoint: Any, step: int) -> Mapping[str, Any]:
    if not isinstance(datapoint, Mapping):
        message = f"step {step}: a datapoint must be a dict, got {type(datapoint).__name__}"
        raise TypeError(message)
    return datapoint


def _put(arrays: Arrays, place: int, datapoint: Mapping[str, Any]) -> None:
    if datapoint.keys() != arrays.keys():
        message = f"it has the keys {sorted(datapoint)}, but the first has {sorted(arrays)}"
        raise ValueError(message)
    for key, value in datapoint.items():
        array, target = np.asarray(value), arrays[key]
        if array.shape != target.shape[1:] or not _fits(value, array.dtype, target.dtype):
            message = (
                f"{key!r} has shape {array.shape} in {array.dtype}, "
                f"but the first has {target.shape[1:]} in {target.dtype}"
            )
            raise ValueError(message)
        target[place] = value if type(value) in _PLAIN else array


def _fits(value: Any, dtype: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Return whether a value can be cast; Python numbers have any precision."""
    if type(value) in _PLAIN:
        return bool(np.result_type(target, value) == target)
    return np.can_cast(dtype, target)
