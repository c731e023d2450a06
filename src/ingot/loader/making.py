"""Making the batch of a step: read, transform, replace what fails, collate."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ingot.errors import FormatError, StorageError, WorkerError
from ingot.loader.collate import collate as collate_alike
from ingot.loader.steps import Steps
from ingot.order.order import Order, node_of
from ingot.order.reading import columns_of, has_columns, items_of, transformed
from ingot.order.rows import Rows

_ATTEMPTS = 16
_NEAR = 1 << 16
_MASK = (1 << 64) - 1
_LAST = (1 << 63) - 1
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Replacement:
    """A sample that could not be read or transformed, and what took its place.

    Attributes:
        step: The step.
        position: The position of the sample; positions count on from epoch to epoch.
        rows: Which rows of which file it is made of, in words.
        substitute: The position of the sample that took its place.
        reason: What was raised.
    """

    __module__ = "ingot.loader"

    step: int
    position: int
    rows: str
    substitute: int
    reason: str


@dataclass(slots=True)
class Made:
    """The batch of a step, and what it cost."""

    num_samples: int
    batch: Any = None
    replaced: Sequence[Replacement] = ()
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception
    is_of_sample: bool


class Maker:
    """Makes the batch of any step, on any thread.

    Args:
        order: The order; an infinite one, or epochs of a finite one without end.
        steps: Which positions make which step.
        topology: Rank and number of ranks.
        collate: Makes a batch of samples; None stacks what is alike.
        convert: Is applied to each batch.
        replaces: Whether to replace samples that fail.
    """

    def __init__(
        self,
        order: Order,
        steps: Steps,
        topology: tuple[int, int],
        collate: Callable[[list[Any]], Any] | None,
        convert: Callable[[Any], Any] | None,
        *,
        replaces: bool,
    ) -> None:
        self._order = order
        self._node = node_of(order)
        self._steps = steps
        self._topology = topology
        self._has_columns = collate is None and has_columns(self._node)
        self._collate = collate or collate_alike
        self._convert = convert
        self._replaces = replaces

    def make(self, step: int) -> Made:
        """Make the batch of a step.

        Raises:
            WorkerError: A sample could not be read, transformed or collated.
        """
        start, stop = self._steps.share(step, *self._topology)
        made = Made(stop - start)
        try:
            self._fill(made, self._order.rows(start, stop))
        except Exception as error:  # noqa: BLE001 -- whatever users' functions raise
            positions = self._mended(made, step, range(start, stop), error)
            try:
                self._fill(made, self._order.rows_at(positions))
            except Exception as again:
                raise _worker_error(step, again) from again
        return made

    def _fill(self, made: Made, rows: Rows) -> None:
        times = [time.perf_counter()]
        if self._has_columns:
            batch = columns_of(self._node, rows)
            times += [time.perf_counter()] * 2
        else:
            items = items_of(self._node, rows)
            times.append(time.perf_counter())
            samples = transformed(self._node, items, rows)
            times.append(time.perf_counter())
            batch = self._collate(samples)
        made.batch = batch if self._convert is None else self._convert(batch)
        times.append(time.perf_counter())
        seconds = np.diff(times).tolist()
        made.seconds = dict(zip(("read_s", "transform_s", "collate_s"), seconds, strict=True))

    def _mended(self, made: Made, step: int, positions: range, error: Exception) -> list[int]:
        """Return the positions to read for a step whose samples cannot be read together.

        Raises:
            WorkerError: A sample fails and may not be replaced, or no sample fails on its own.
        """
        found: list[int] = []
        replaced: list[Replacement] = []
        for position in positions:
            failure = self._failure(position)
            if failure is not None:
                place = self._place(position)
                if not (self._replaces and failure.is_of_sample):
                    raise _worker_error(
                        step, failure.error, f", position {position} ({place})"
                    ) from failure.error
                substitute = self._substitute(step, position, failure.error)
                reason = f"{type(failure.error).__name__}: {failure.error}"
                replaced.append(Replacement(step, position, place, substitute, reason))
                found.append(substitute)
            else:
                found.append(position)
        if not replaced and not self._replaces:
            raise _worker_error(step, error) from error
        made.replaced = tuple(replaced)
        return found

    def _failure(self, position: int) -> _Failure | None:
        """Return why the sample at a position fails, if it does."""
        rows = self._order.rows(position, position + 1)
        try:
            items = items_of(self._node, rows)
        except Exception as error:  # noqa: BLE001 -- sources are of any kind
            return _Failure(error, isinstance(error, FormatError | StorageError))
        try:
            transformed(self._node, items, rows)
        except Exception as error:  # noqa: BLE001 -- users' functions
            return _Failure(error, not isinstance(error, MemoryError))
        return None

    def _substitute(self, step: int, position: int, error: Exception) -> int:
        for attempt in range(_ATTEMPTS):
            candidate = self._candidate(position, attempt)
            if self._failure(candidate) is None:
                return candidate
        place = f", position {position} and {_ATTEMPTS} substitutes"
        raise _worker_error(step, error, place) from error

    def _candidate(self, position: int, attempt: int) -> int:
        """Return a position of the same epoch; without epochs, one of the next 65,536."""
        number = _hashed(position ^ (attempt << 56))
        length = self._steps.length
        if length is None:
            return min(position + 1 + number % _NEAR, _LAST - 1)
        return position - position % length + number % length

    def _place(self, position: int) -> str:
        rows = self._order.rows(position, position + 1)
        source = self._order.sources[rows.source[0]] if len(rows) else None
        path = getattr(source, "path", None)
        name = Path(path).name if isinstance(path, str) else type(source).__name__
        shown = ", ".join(map(str, rows.row[:_SHOWN].tolist()))
        more = ", ..." if len(rows) > _SHOWN else ""
        return f"{'row' if len(rows) == 1 else 'rows'} {shown}{more} of {name}"


def _worker_error(step: int, error: Exception, place: str = "") -> WorkerError:
    reason = f"{type(error).__name__}: {error}"
    return WorkerError(f"step {step}{place}: {reason}", getattr(error, "path", None), step)


def _hashed(number: int) -> int:
    """Return 64 bits that depend on a number: SplitMix64."""
    mixed = (number + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)
