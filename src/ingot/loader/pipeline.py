"""Threads that make the results of steps ahead of time, and hand them out in order."""

import atexit
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from ingot.errors import ClosedError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

NAME = "ingot-loader"
"""What the names of the threads begin with."""

_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[T]):
    result: T | None
    error: BaseException | None


class Work(Protocol[T_co]):
    """What the threads of a pipeline do."""

    def start(self) -> None:
        """Get ready, unless that is done already; called before each result is taken."""

    def fetch(self, steps: Sequence[int]) -> Sequence[Any]:
        """Get what several steps need, together, on any thread; None for those without."""

    def make(self, step: int, fetched: Any, is_wanted: Callable[[], bool]) -> T_co:
        """Make the result of a step, on any thread; give up once it is not wanted.

        Args:
            step: The step.
            fetched: What `fetch` has got for it; None if it was not asked.
            is_wanted: Whether the result is still wanted.
        """

    def stop(self) -> None:
        """Let calls of `make` end soon; there are no others."""


class Pipeline(Generic[T]):
    """Makes the results of steps on threads, at most `prefetch` of them ahead.

    Threads start with the first `take`. They hold the pipeline, but not its owner, which stops
    them. In a forked child, the pipeline begins anew with threads of its own.

    Args:
        work: Makes the results.
        follow: Returns the step after a step.
        workers: The number of threads; 0 makes each result when it is taken.
        prefetch: How many results are made, or being made, before they are taken.
    """

    def __init__(
        self, work: Work[T], follow: Callable[[int], int], workers: int, prefetch: int
    ) -> None:
        self._task = work
        self._follow = follow
        self._workers = workers
        self._prefetch = prefetch
        self._begin()
        _alive.add(self)

    def _begin(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._is_stopped = False
        self._restart(0)

    def _restart(self, step: int) -> None:
        self._run = object()  # What earlier runs have begun is thrown away.
        self._fetched: dict[int, Any] = {}
        self._done: dict[int, _Outcome[T]] = {}
        self._front = self._next = step
        self._is_begun = False
        self._ahead = 0
        self._stop: int | None = 0

    def start(self, step: int, stop: int | None) -> None:
        """Begin with a step and those after it up to `stop`, before they are taken."""
        if os.getpid() != self._process:
            self._begin()
        self._task.start()
        with self._changed:
            if step != self._front:
                self._restart(step)
            self._stop = stop
            self._changed.notify_all()
            self._hire()

    def take(self, step: int, stop: int | None) -> T:
        """Return the result of a step, and continue with those after it up to `stop`.

        Raises:
            ClosedError: The pipeline was stopped meanwhile.
            BaseException: What was raised when this step was made.
        """
        self.start(step, stop)
        with self._changed:
            if self._threads:
                return self._wait(step)
            self._front = self._next = self._follow(step)
        return self._task.make(step, None, _always)

    def _wait(self, step: int) -> T:
        while step not in self._done:
            if self._is_stopped:
                raise ClosedError("the loader was closed")
            self._changed.wait()
        outcome = self._done.pop(step)
        self._front = self._follow(step)
        self._ahead -= 1
        self._changed.notify_all()
        if outcome.error is not None:
            raise outcome.error
        return cast(T, outcome.result)

    def restart(self) -> None:
        """Throw away what was made ahead."""
        if os.getpid() == self._process:
            with self._changed:
                self._restart(self._front)

    def stop(self) -> None:
        """Let the threads end; do not wait for them."""
        if os.getpid() == self._process:
            with self._changed:
                self._is_stopped = True
                self._restart(self._front)
                self._changed.notify_all()
            self._task.stop()

    def join(self, deadline: float = math.inf) -> None:
        """Wait for the threads to end, at most until `time.monotonic()` is `deadline`."""
        if os.getpid() == self._process:
            for thread in self._threads:
                left = deadline - time.monotonic()
                if thread is not threading.current_thread():
                    thread.join(None if left == math.inf else max(left, 0))

    def _hire(self) -> None:
        while len(self._threads) < self._workers:
            name = f"{NAME}-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # The system has no thread to spare.
                return
            self._threads.append(thread)

    def _work(self) -> None:
        while (begun := self._begin_some()) is not None:
            run, steps, fetched = begun
            if len(steps) > 1:
                self._fetch(run, steps)
            else:
                self._make(run, steps[0], fetched)
            del begun, fetched  # A waiting thread holds nothing.

    def _begin_some(self) -> tuple[object, Sequence[int], Any] | None:
        """Wait for something to do: several steps to fetch, or one to make.

        What was fetched is made first. If the caller takes results faster than they are made,
        there is room for several steps, which are fetched together: however long one wait
        takes, `prefetch` steps wait at the same time.
        """
        with self._changed:
            while not self._is_stopped:
                if self._fetched:
                    step = min(self._fetched)
                    return self._run, [step], self._fetched.pop(step)
                if steps := self._steps():
                    self._ahead += len(steps)
                    return self._run, steps, None
                self._changed.wait()
        return None

    def _steps(self) -> list[int]:
        """Return the next steps, a thread's share of them, once there is room for it."""
        share = -(-self._prefetch // self._workers) if self._is_begun else 1
        steps: list[int] = []
        if share <= self._prefetch - self._ahead:
            while len(steps) < share and (self._stop is None or self._next < self._stop):
                steps.append(self._next)
                self._next = self._follow(self._next)
        self._is_begun = self._is_begun or bool(steps)
        return steps

    def _fetch(self, run: object, steps: Sequence[int]) -> None:
        fetched: Sequence[Any] = [None] * len(steps)
        stopped: BaseException | None = None
        try:
            fetched = self._task.fetch(steps)
        except Exception:  # noqa: BLE001, S110 -- the step that it belongs to raises it again
            pass
        except BaseException as error:  # noqa: BLE001 -- it is raised where a step is taken
            stopped = error
        with self._changed:
            if run is self._run:
                self._fetched.update(zip(steps, fetched, strict=True))
                if stopped is not None:
                    del self._fetched[steps[0]]
                    self._done[steps[0]] = _Outcome(None, stopped)
                self._changed.notify_all()

    def _make(self, run: object, step: int, fetched: Any) -> None:
        outcome = self._outcome(run, step, fetched)
        with self._changed:
            if run is self._run:
                self._done[step] = outcome
                self._changed.notify_all()

    def _outcome(self, run: object, step: int, fetched: Any) -> _Outcome[T]:
        try:
            return _Outcome(self._task.make(step, fetched, lambda: run is self._run), None)
        except BaseException as error:  # noqa: BLE001 -- it is raised where the step is taken
            return _Outcome(None, error)


def _always() -> bool:
    return True


_alive: "weakref.WeakSet[Pipeline[Any]]" = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """End all threads while the interpreter can still run them."""
    pipelines = list(_alive)
    for pipeline in pipelines:
        pipeline.stop()
    deadline = time.monotonic() + _PATIENCE_S
    for pipeline in pipelines:
        pipeline.join(deadline)
