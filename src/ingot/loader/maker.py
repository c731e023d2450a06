"""Making the batch of a step: read, transform, replace what fails, collate."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ingot.errors import FormatError, StorageError, WorkerError
from ingot.loader.collate import collate as collate_alike
from ingot.loader.steps import Steps
from ingot.order.arguments import INT64_MAX
from ingot.order.order import Order, node_of
from ingot.order.rows import Rows, text_of
from ingot.order.samples import Columns, Content, items_of, read, transformed

Convert: TypeAlias = Callable[[Any], Any]

_ATTEMPTS = 16
_NEAR = 1 << 16
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Replacement:
    """A sample that could not be read or transformed, and what took its place.

    Attributes:
        step: The step.
        position: The position of the sample; positions count on from epoch to epoch.
        rows: Which rows it is made of and where they are stored, in words; numbers are those of
            `verify` and of errors.
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
class Fetched:
    """What was read for a step, and how long it took."""

    rows: Rows
    content: Content
    seconds: float


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception
    is_of_sample: bool


class Unwanted(BaseException):
    """The batch was cancelled; not a sample error."""


class Maker:
    """Makes the batch of any step, on any thread.

    Args:
        order: The order; an infinite one, or epochs of a finite one without end.
        steps: Which positions make which step.
        topology: Rank and number of ranks.
        collate: Makes a batch of samples; None stacks what is alike.
        replaces: Whether to replace samples that fail.

    Attributes:
        cut: Which positions make which step, as given.
    """

    def __init__(
        self,
        order: Order,
        steps: Steps,
        topology: tuple[int, int],
        collate: Callable[[list[Any]], Any] | None,
        *,
        replaces: bool,
    ) -> None:
        self._order = order
        self._node = node_of(order)
        self.cut = steps
        self._topology = topology
        self._columns = Columns.of(self._node) if collate is None else None
        self._collate = collate or collate_alike
        self._replaces = replaces

    def fetch(self, steps: Sequence[int]) -> Sequence[Fetched]:
        """Read what several steps need, together.

        Raises:
            Exception: A part of it cannot be read; `make` finds out which sample that is.
        """
        start = time.perf_counter()
        rows = [self._rows(step) for step in steps]
        found = self._contents(rows)
        seconds = (time.perf_counter() - start) / len(steps)
        return [Fetched(*pair, seconds) for pair in zip(rows, found, strict=True)]

    def _contents(self, batches: Sequence[Rows]) -> list[Content]:
        if self._columns is not None:
            return self._columns.fetch(batches)
        return read(self._node, batches)

    def _rows(self, step: int) -> Rows:
        return self._order.rows(*self.cut.share(step, *self._topology))

    def make(
        self,
        step: int,
        fetched: Fetched | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Made:
        """Make the batch of a step.

        Args:
            step: The step.
            fetched: What `fetch` has read for it, if anything.
            is_wanted: Is asked between samples that functions of `map` transform; if it is
                false, the rest is not done.

        Raises:
            WorkerError: A sample could not be read, transformed or collated.
            Unwanted: The batch was cancelled.
        """
        start, stop = self.cut.share(step, *self._topology)
        made = Made(stop - start)

        def check() -> None:
            if not is_wanted():
                raise Unwanted

        began = time.perf_counter()
        try:
            self._fill(made, fetched or self._read(self._rows(step)), check)
        except Exception as error:  # noqa: BLE001 -- whatever users' functions raise
            positions = self._mended(made, step, range(start, stop), error)
            seconds = time.perf_counter() - began
            try:
                self._fill(made, self._read(self._order.rows_at(positions)), check)
            except Exception as again:
                raise _worker_error(step, again) from again
            made.seconds["replace_s"] = seconds
        return made

    def _read(self, rows: Rows) -> Fetched:
        start = time.perf_counter()
        (content,) = self._contents([rows])
        return Fetched(rows, content, time.perf_counter() - start)

    def _fill(self, made: Made, fetched: Fetched, check: Callable[[], object]) -> None:
        times = [time.perf_counter()]
        if self._columns is not None:
            made.batch = self._columns.decode(fetched.rows, fetched.content)
            times += [time.perf_counter()] * 2
        else:
            items = items_of(self._node, fetched.content)
            times.append(time.perf_counter())
            samples = transformed(self._node, items, fetched.rows, check)
            times.append(time.perf_counter())
            made.batch = self._collate(samples)
        times.append(time.perf_counter())
        seconds = np.diff(times).tolist()
        made.seconds = dict(zip(("read_s", "transform_s", "collate_s"), seconds, strict=True))
        made.seconds["read_s"] += fetched.seconds

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
            (content,) = read(self._node, [rows])
            items = items_of(self._node, content)
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
        length = self.cut.length
        if length is None:
            return min(position + 1 + number % _NEAR, INT64_MAX - 1)
        return position - position % length + number % length

    def _place(self, position: int) -> str:
        rows = self._order.rows(position, position + 1)
        if not len(rows):
            return "no rows"
        text = text_of(self._order.origins(rows))
        source = self._order.sources[rows.source[0]]
        return text if " of " in text else f"{text} of {type(source).__name__}"


def converted(step: int, made: Made, convert: Convert | None) -> Made:
    """Return what was made for a step with its batch converted, in the process of the loader.

    Raises:
        WorkerError: It cannot be converted.
    """
    if convert is not None:
        start = time.perf_counter()
        try:
            made.batch = convert(made.batch)
        except Exception as error:
            raise _worker_error(step, error) from error
        made.seconds["collate_s"] += time.perf_counter() - start
    return made


class Threads:
    """Makes batches on the threads of a pipeline."""

    def __init__(self, maker: Maker, convert: Convert | None) -> None:
        self._maker = maker
        self._convert = convert

    def start(self) -> None:
        """Do nothing: threads need no preparation."""

    def fetch(self, steps: Sequence[int]) -> Sequence[Fetched | None]:
        """Read what several steps need, in one native call."""
        return self._maker.fetch(steps)

    def make(self, step: int, fetched: Fetched | None, is_wanted: Callable[[], bool]) -> Made:
        """Make the batch of a step, as a maker does."""
        return converted(step, self._maker.make(step, fetched, is_wanted), self._convert)

    def stop(self) -> None:
        """Do nothing: the pipeline tells that a batch is not wanted."""


def _worker_error(step: int, error: Exception, place: str = "") -> WorkerError:
    reason = f"{type(error).__name__}: {error}"
    return WorkerError(f"step {step}{place}: {reason}", getattr(error, "path", None), step)


def _hashed(number: int) -> int:
    """Return 64 bits that depend on a number: SplitMix64."""
    mixed = (number + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)
