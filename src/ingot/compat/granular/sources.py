"""`granular.sources`: functions of a step to a datapoint, which can be composed.

A source is anything that can be called with a step, or indexed. All sources here are
infinite, stateless, and can be pickled if their inputs can. Each of them also has `each`: the
datapoints of many steps, for which what reads the data is asked once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.compat.handle import Reopening
from ingot.locks import ProcessLock

Source: TypeAlias = Callable[[int], Any]

_EPOCHS = 2
"""How many permutations to keep: read-ahead threads work on both sides of an epoch's end."""


def convert(source: Any) -> Source:
    """Return a source as a function of the step.

    Raises:
        TypeError: It can be neither called nor indexed.
    """
    if callable(source):
        called: Source = source
        return called
    if hasattr(source, "__getitem__"):
        indexed: Source = source.__getitem__
        return indexed
    message = f"a source must be callable or indexable, got {type(source).__name__}"
    raise TypeError(message)


def each(source: Source, steps: Sequence[int]) -> Iterator[Any]:
    """Yield the datapoints of steps.

    What has `__getitems__`, such as a reader, reads all of them at once.
    """
    if isinstance(source, _Composed):
        return source.each(steps)
    is_indexed = getattr(source, "__name__", None) == "__getitem__"
    many = getattr(getattr(source, "__self__", None), "__getitems__", None) if is_indexed else None
    return map(source, steps) if many is None else iter(many(list(steps)))


def _merged(
    sources: Sequence[Source], numbers: Sequence[int], steps: Sequence[int]
) -> Iterator[Any]:
    """Yield the datapoint of each step from the source with its number."""
    own: dict[int, list[int]] = {}
    for number, step in zip(numbers, steps, strict=True):
        own.setdefault(number, []).append(step)
    found = {number: each(sources[number], its) for number, its in own.items()}
    return (next(found[number]) for number in numbers)


class _Composed(ABC):
    """A source that is made of others."""

    @abstractmethod
    def each(self, steps: Sequence[int]) -> Iterator[Any]:
        """Yield the datapoints of steps."""

    def __call__(self, step: int) -> Any:
        """Return the datapoint of a step."""
        return next(self.each([step]))


def _length(source: Any, length: int | None) -> int:
    found = length or len(source)
    if found < 1:
        message = f"a source must have at least one datapoint, got {found}"
        raise ValueError(message)
    return found


class Transform(_Composed):
    """Applies a function to each datapoint.

    Args:
        source: The datapoints.
        fn: Called as `fn(datapoint, seed=[seed, step])`.
        seed: The random seed.
    """

    def __init__(self, source: Any, fn: Callable[..., Any], seed: int = 0) -> None:
        self.source = convert(source)
        self.fn = fn
        self.seed = seed

    def each(self, steps: Sequence[int]) -> Iterator[Any]:
        """Yield the datapoints of steps; the function is called as they are taken."""
        points = zip(each(self.source, steps), steps, strict=True)
        return (self.fn(point, seed=[self.seed, step]) for point, step in points)


class Sample(_Composed):
    """Random datapoints, drawn independently.

    Args:
        source: The datapoints.
        length: The number of datapoints; None for the length of `source`.
        seed: The random seed.
    """

    def __init__(self, source: Any, length: int | None = None, seed: int = 0) -> None:
        self.length = _length(source, length)
        self.source = convert(source)
        self.seed = seed

    def each(self, steps: Sequence[int]) -> Iterator[Any]:
        """Yield the datapoints of steps."""
        drawn = (np.random.default_rng([self.seed, step]).choice(self.length) for step in steps)
        return each(self.source, [int(index) for index in drawn])


class Epochs(_Composed, Reopening):
    """All datapoints, repeatedly, each epoch in another order.

    The order is numpy's permutation for the seed and the epoch; seed 0 matches Granular.

    Args:
        source: The datapoints.
        length: The number of datapoints; None for the length of `source`.
        shuffle: Whether to shuffle them.
        seed: The random seed.
    """

    OPENED = ("_lock", "_orders")

    def __init__(
        self, source: Any, length: int | None = None, shuffle: bool = True, seed: int = 0
    ) -> None:
        self.length = _length(source, length)
        self.source = convert(source)
        self.shuffle = shuffle
        self.seed = seed
        self._open()

    def _open(self) -> None:
        self._orders: dict[int, npt.NDArray[np.int64]] = {}
        self._lock = ProcessLock()

    def each(self, steps: Sequence[int]) -> Iterator[Any]:
        """Yield the datapoints of steps."""
        return each(self.source, [self._index(*divmod(step, self.length)) for step in steps])

    def _index(self, epoch: int, place: int) -> int:
        return int(self._order(epoch)[place]) if self.shuffle else place

    def _order(self, epoch: int) -> npt.NDArray[np.int64]:
        with self._lock.own:
            if epoch not in self._orders:
                order = np.random.default_rng([self.seed, epoch]).permutation(self.length)
                kept = list(self._orders.items())[1 - _EPOCHS :]
                self._orders = dict([*kept, (epoch, order)])
            return self._orders[epoch]


class Truncate(_Composed):
    """The first datapoints, repeatedly.

    Args:
        source: The datapoints.
        limit: The maximum number of datapoints to use.
        length: The number of datapoints; None for the length of `source`.
    """

    def __init__(self, source: Any, limit: int, length: int | None = None) -> None:
        self.limit = min(_length(source, length), limit)
        self.source = convert(source)

    def each(self, steps: Sequence[int]) -> Iterator[Any]:
        """Yield the datapoints of steps."""
        return each(self.source, [step % self.limit for step in steps])


class Interleave(_Composed):
    """One datapoint of each source in turn."""

    def __init__(self, sources: Iterable[Any]) -> None:
        self.sources = [convert(source) for source in sources]

    def each(self, steps: Sequence[int]) -> Iterator[Any]:
        """Yield the datapoints of steps."""
        turns, numbers = zip(*(divmod(step, len(self.sources)) for step in steps), strict=True)
        return _merged(self.sources, numbers, turns)


class Mix(_Composed):
    """Draws a source by weight for each datapoint; every source gets the same step.

    Args:
        sources: The sources.
        weights: The relative frequency of each source.
        seed: The random seed.
    """

    def __init__(
        self, sources: Iterable[Any], weights: Sequence[float] | npt.NDArray[Any], seed: int = 0
    ) -> None:
        self.sources = [convert(source) for source in sources]
        shares = np.array(weights, np.float32)
        self.weights = shares / shares.sum()
        self.seed = seed
        if self.weights.shape != (len(self.sources),):
            message = f"expected {len(self.sources)} weights, one per source, got {weights}"
            raise ValueError(message)

    def each(self, steps: Sequence[int]) -> Iterator[Any]:
        """Yield the datapoints of steps."""
        return _merged(self.sources, [self._drawn(step) for step in steps], steps)

    def _drawn(self, step: int) -> int:
        rng = np.random.default_rng([self.seed, step])
        return int(rng.choice(len(self.sources), p=self.weights))
