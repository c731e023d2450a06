"""Pieces of batches, each made by one worker of a loader."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.compat.granular.sources import Source, each
from ingot.loader.making import Made, Unwanted

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Spec: TypeAlias = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]

_PLAIN = (bool, int, float, complex)


class Pieces:
    """Makes any piece of any batch, on any thread or in any process.

    Piece `k` of the batch that begins at step `s` has the number `s * count + k`.

    Args:
        source: The datapoints.
        batch: The number of datapoints of a batch, on this shard.
        count: The number of pieces of a batch.
        shard_id: The shard.
        num_shards: The number of shards.

    Attributes:
        stride: The number of datapoints of a batch, on all shards together.
        spec: The dtype and the shape of each value.
        cut: Nothing: a piece depends on its number alone.
    """

    cut: Any = None

    def __init__(
        self, source: Source, batch: int, count: int, shard_id: int, num_shards: int
    ) -> None:
        self.stride = batch * num_shards
        self.spec: Spec = {}
        self._source = source
        self._batch = batch
        self._count = count
        self._first = batch * shard_id

    def of(self, step: int) -> range:
        """Return the numbers of the pieces of the batch that begins at a step."""
        return range(step * self._count, (step + 1) * self._count)

    def after(self, number: int) -> int:
        """Return the number of the piece after a piece."""
        step, piece = divmod(number, self._count)
        return number + 1 if piece + 1 < self._count else self.of(step + self.stride).start

    def fetch(self, numbers: Sequence[int]) -> Sequence[None]:
        """Read nothing: each piece reads what it needs, in one call if its source can."""
        return [None] * len(numbers)

    def make(
        self, number: int, fetched: None = None, is_wanted: Callable[[], bool] | None = None
    ) -> Made:
        """Make the arrays of a piece; end with the next datapoint once they are not wanted.

        Raises:
            RuntimeError: A datapoint could not be made, or does not fit the first one.
            Unwanted: They were not wanted any more.
        """
        del fetched
        step, piece = divmod(number, self._count)
        start, end = (k * self._batch // self._count for k in (piece, piece + 1))
        steps = range(step + self._first + start, step + self._first + end)
        arrays = {
            key: np.empty((len(steps), *shape), dtype) for key, (dtype, shape) in self.spec.items()
        }
        points = self._datapoints(steps)
        for place, at in enumerate(steps):
            if is_wanted is not None and not is_wanted():
                raise Unwanted
            try:
                _put(arrays, place, next(points))
            except BaseException as error:
                if not isinstance(error, Exception) and _is_main():
                    raise
                message = f"the datapoint of step {at} could not be made: {error!r}"
                raise RuntimeError(message) from error
        return Made(len(steps), arrays)

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


def _is_main() -> bool:
    is_main_thread = threading.current_thread() is threading.main_thread()
    return is_main_thread and multiprocessing.parent_process() is None


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
