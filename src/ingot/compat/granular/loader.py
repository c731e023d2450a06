"""`granular.Loader`: batches of a source, read ahead."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.context import BaseContext
from typing import Any, Self

import numpy as np

import ingot
from ingot.compat.granular.pieces import Arrays, DatapointError, Pieces, Spec, spec_of
from ingot.compat.granular.sources import convert
from ingot.errors import WorkerError
from ingot.formats.granular import Closing


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
        self._num_pieces = min(-(-max(workers, 1) // (prefetch + 1)), batch)
        self._workers: dict[str, Any] = {"workers": workers}
        if mp and workers:
            self._workers = {"processes": workers, "mp_context": mp}
        self._spec: Spec | None = None
        self._pieces: Pieces | None = None
        self._loader: ingot.Loader | None = None
        self._made: Iterator[Arrays] = iter(())

    @property
    def spec(self) -> Spec:
        """The dtype and the shape of each value, from the first datapoint."""
        if self._spec is None:
            self._spec = spec_of(self.source(0))
        return self._spec

    def _start(self) -> None:
        """Begin to make the pieces of the batches from the next step on."""
        first = self.consumed + self.batch * self.shard_id
        steps = first, self.batch * self.num_shards
        self._pieces = Pieces(self.source, self.spec, steps, self.batch, self._num_pieces)
        self._loader = ingot.Loader(
            self._pieces,
            batch_size=1,
            prefetch=self._num_pieces * (self.prefetch + 1),
            shard=None,
            collate=_first,
            **self._workers,
        )
        self._made = iter(self._loader)

    def _stop(self) -> None:
        """End the threads or processes, with the datapoints that they are making."""
        if self._loader is not None and self._pieces is not None:
            self._pieces.is_cancelled = True
            self._loader.close()
            self._loader = None

    def __iter__(self) -> Self:
        self._check_open()
        return self

    def __next__(self) -> Arrays:
        """Return the next batch.

        Raises:
            RuntimeError: A datapoint could not be made.
        """
        self._check_open()
        if self._loader is None:
            self._start()
        made = [self._take(self._made) for _ in range(self._num_pieces)]
        self.consumed += self.batch * self.num_shards
        if len(made) == 1:
            return made[0]
        return {key: np.concatenate([one[key] for one in made]) for key in made[0]}

    def _take(self, made: Iterator[Arrays]) -> Arrays:
        try:
            return next(made)
        except WorkerError as error:
            self._stop()
            if isinstance(error.__cause__, DatapointError):
                raise error.__cause__ from error.__cause__.__cause__
            message = f"the batch at step {self.consumed} could not be made: a worker process died"
            raise RuntimeError(message) from error
        except BaseException:
            self._stop()
            raise

    def save(self) -> dict[str, int]:
        """Return the state: the next step."""
        return {"step": self.consumed}

    def load(self, d: Mapping[str, int]) -> None:
        """Resume from a state."""
        self._stop()
        self.consumed = int(d["step"])

    def _close(self) -> None:
        self._stop()


def _first(pieces: list[Arrays]) -> Arrays:
    return pieces[0]
