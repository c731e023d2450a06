"""Pieces of batches, each made by one worker of a loader."""

import multiprocessing
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.compat.granular.sources import Source, each

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Spec: TypeAlias = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]

_PLAIN = (bool, int, float, complex)


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
                if not isinstance(error, Exception) and _is_main():
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
