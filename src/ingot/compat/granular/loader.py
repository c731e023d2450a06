"""`granular.Loader`: batches of a source, read ahead."""

import weakref
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.context import BaseContext
from typing import Any, Self

import numpy as np

from ingot.cached import cached_property
from ingot.compat.granular.pieces import Arrays, Pieces, Spec, spec_of
from ingot.compat.granular.sources import convert
from ingot.compat.granular.utils import Closing
from ingot.errors import WorkerError
from ingot.loader.making import Conversion, Made, Threads
from ingot.loader.pipeline import Pipeline
from ingot.loader.processes import Processes


class Loader(Closing):
    """An infinite stream of batches of a source, in the order of steps.

    Threads make the datapoints, or processes if you pass `mp`. The state is only the step: you
    may load it with another number of workers, shards or datapoints per batch. When the program
    ends, workers finish the datapoints that they have started.

    Args:
        source: A function that takes the step and returns a dict of arrays or numbers, which
            always have the same shapes. Several threads call it.
        batch: The number of datapoints in a batch.
        prefetch: The number of batches to make ahead.
        workers: The number of threads or processes; with 0 each batch is made when it is requested.
        recycle_after: Accepted and ignored: each batch has its own arrays.
        shard_id: The part of each step that this loader makes.
        num_shards: The number of parts.
        mp: A context of `multiprocessing` starts workers that are processes, for functions that
            hold the GIL; None starts threads.
        fns: Refused: see `sources.Transform`.
        shuffle: Refused: see `sources.Epochs`.

    Attributes:
        consumed: The step at which the next batch begins, on all shards together.
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
        mp: BaseContext | None = None,
        *,
        fns: Iterable[Callable[..., Any]] = (),
        shuffle: object = None,
    ) -> None:
        super().__init__()
        del recycle_after
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
        self.consumed = 0
        # With fewer batches than workers, several workers share a batch.
        count = min(-(-max(workers, 1) // (prefetch + 1)), batch)
        self._pieces = Pieces(self.source, batch, count, shard_id, num_shards)
        parts = self._pieces, Conversion(None)
        work = Processes(*parts, workers, mp) if mp and workers else Threads(*parts)
        self._pipeline: Pipeline[Made] = Pipeline(
            work, self._pieces.after, workers, count * (prefetch + 1)
        )
        weakref.finalize(self, self._pipeline.stop).atexit = False

    @cached_property
    def spec(self) -> Spec:
        """The dtype and the shape of each value, from the first datapoint."""
        return spec_of(self.source(0))

    def __iter__(self) -> Self:
        self._check_open()
        return self

    def __next__(self) -> Arrays:
        """Return the next batch.

        Raises:
            RuntimeError: A datapoint could not be made.
        """
        self._check_open()
        self._pieces.spec = self.spec
        end = self.consumed + (self.prefetch + 1) * self._pieces.stride
        stop = self._pieces.of(end).start
        made = [self._take(number, stop) for number in self._pieces.of(self.consumed)]
        self.consumed += self._pieces.stride
        if len(made) == 1:
            return made[0]
        return {key: np.concatenate([one[key] for one in made]) for key in made[0]}

    def _take(self, number: int, stop: int) -> Arrays:
        try:
            arrays: Arrays = self._pipeline.take(number, stop).batch
        except WorkerError as error:
            message = f"the batch at step {self.consumed} could not be made: a worker process died"
            raise RuntimeError(message) from error
        return arrays

    def save(self) -> dict[str, int]:
        """Return the state: the next step."""
        return {"step": self.consumed}

    def load(self, d: Mapping[str, int]) -> None:
        """Resume from a state."""
        self.consumed = int(d["step"])
        self._pipeline.restart()

    def _close(self) -> None:
        self._pipeline.stop()
        self._pipeline.join()
