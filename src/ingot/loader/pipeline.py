"""Threads that make the results of steps ahead of time, and hand them out in order."""

import atexit
import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

NAME = "ingot-loader"
"""What the names of the threads begin with."""

_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[T]):
    result: T | None
    error: BaseException | None


class Pipeline(Generic[T]):
    """Makes the results of steps on threads, at most `prefetch` of them ahead.

    Threads start with the first `take`. They hold the pipeline, but not its owner, who stops
    them. In a forked child, the pipeline begins anew with threads of its own.

    Args:
        make: Makes the result of a step; called on several threads.
        follow: Returns the step after a step.
        workers: The number of threads; 0 makes each result when it is taken.
        prefetch: How many results are made, or being made, before they are taken.
    """

    def __init__(
        self, make: Callable[[int], T], follow: Callable[[int], int], workers: int, prefetch: int
    ) -> None:
        self._make = make
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
        self._done: dict[int, _Outcome[T]] = {}
        self._front = self._next = step
        self._ahead = 0
        self._stop: int | None = 0

    def take(self, step: int, stop: int | None) -> T:
        """Return the result of a step, and go on with those after it up to `stop`.

        Raises:
            BaseException: What `make` raised for this step.
        """
        if os.getpid() != self._process:
            self._begin()
        with self._changed:
            if step != self._front:
                self._restart(step)
            self._stop = stop
            self._changed.notify_all()
            self._hire()
            if self._threads:
                return self._wait(step)
            self._front = self._next = self._follow(step)
        return self._make(step)

    def _wait(self, step: int) -> T:
        while step not in self._done:
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
        """Let the threads end after the steps that they are at; do not wait for them."""
        if os.getpid() == self._process:
            with self._changed:
                self._is_stopped = True
                self._restart(self._front)
                self._changed.notify_all()

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
        while (begun := self._begin_step()) is not None:
            run, step = begun
            outcome = self._outcome(step)
            with self._changed:
                if run is self._run:
                    self._done[step] = outcome
                    self._changed.notify_all()
            del outcome  # A waiting thread holds no batch.

    def _begin_step(self) -> tuple[object, int] | None:
        with self._changed:
            while not self._is_stopped:
                has_more = self._stop is None or self._next < self._stop
                if has_more and self._ahead < self._prefetch:
                    step = self._next
                    self._next = self._follow(step)
                    self._ahead += 1
                    return self._run, step
                self._changed.wait()
        return None

    def _outcome(self, step: int) -> _Outcome[T]:
        try:
            return _Outcome(self._make(step), None)
        except BaseException as error:  # noqa: BLE001 -- it is raised where the step is taken
            return _Outcome(None, error)


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
