"""`granular.Loader`: batches of a source, read ahead."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import parent_process
from multiprocessing.context import BaseContext
from operator import itemgetter
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

import ingot
from ingot.compat.granular.sources import Source, convert, each
from ingot.errors import WorkerError
from ingot.formats.granular import Closing

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Spec: TypeAlias = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]

_PLAIN = (bool, int, float, complex)


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
            collate=itemgetter(0),
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


class CancelledError(Exception):
    """The piece is not wanted any more."""


class DatapointError(RuntimeError):
    """A datapoint could not be made, or does not fit the first one."""


class Pieces:
    """The pieces of the batches from a step on: a sequence without end.

    Piece `k` of batch `b` has the number `b * count + k`.

    Args:
        source: The datapoints.
        spec: The dtype and the shape of each value.
        steps: The step of the first datapoint of each batch on this shard: the first and the
            distance from one to the next.
        batch: The number of datapoints of a batch, on this shard.
        count: The number of pieces of a batch.

    Attributes:
        is_cancelled: Whether pieces that are being made end with the next datapoint.
    """

    def __init__(
        self, source: Source, spec: Spec, steps: tuple[int, int], batch: int, count: int
    ) -> None:
        self.is_cancelled = False
        self._source = source
        self._spec = spec
        self._first, self._stride = steps
        self._batch = batch
        self._count = count

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, number: int) -> Arrays:
        """Make the arrays of a piece.

        Raises:
            DatapointError: A datapoint could not be made, or does not fit the first one.
            CancelledError: They are not wanted any more.
        """
        turn, piece = divmod(number, self._count)
        start, end = (k * self._batch // self._count for k in (piece, piece + 1))
        first = self._first + turn * self._stride
        steps = range(first + start, first + end)
        arrays = {
            key: np.empty((len(steps), *shape), dtype) for key, (dtype, shape) in self._spec.items()
        }
        points = self._datapoints(steps)
        for place, at in enumerate(steps):
            if self.is_cancelled:
                raise CancelledError
            try:
                _put(arrays, place, next(points))
            except BaseException as error:
                in_main = threading.current_thread() is threading.main_thread()
                if not isinstance(error, Exception) and in_main and not parent_process():
                    raise
                message = f"the datapoint of step {at} could not be made: {error!r}"
                raise DatapointError(message) from error
        return arrays

    def _datapoints(self, steps: Sequence[int]) -> Iterator[Any]:
        """Yield the datapoints of steps: read together, or one by one if that fails."""
        done = 0
        try:
            for point in each(self._source, steps):
                yield point
                done += 1
        except Exception:  # noqa: BLE001 -- whatever sources raise
            yield from map(self._source, steps[done:])


def spec_of(datapoint: Any) -> Spec:
    """Return the dtype and the shape of each value."""
    values = {key: np.asarray(value) for key, value in _dict(datapoint).items()}
    return {key: (value.dtype, value.shape) for key, value in values.items()}


def _dict(datapoint: Any) -> Mapping[str, Any]:
    if not isinstance(datapoint, Mapping):
        message = f"a datapoint must be a dict, got {type(datapoint).__name__}"
        raise TypeError(message)
    return datapoint


def _put(arrays: Arrays, place: int, datapoint: Any) -> None:
    if _dict(datapoint).keys() != arrays.keys():
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
