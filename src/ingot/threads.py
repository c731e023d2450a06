"""Threads: how many compute one batch, and those on which reads wait for a device."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, TypeVar

from ingot._core import set_threads as _set

READS = 16
"""How many reads outside of the engine wait at the same time in a process."""

T = TypeVar("T")

_pools: dict[int, ThreadPoolExecutor] = {}  # By process: threads do not survive a fork.


def set_threads(n: int) -> None:
    """Set how many threads work on one batch, the calling thread included.

    With 1, the calling thread works alone, and Ingot starts no thread that computes. Threads
    that wait for a device, read ahead or write are not counted. The setting takes effect from
    the next batch on, and processes that are forked later inherit it. The default is the value
    of the environment variable INGOT_THREADS. Without the variable it is the number of cores that
    this process may use, and 1 in the workers of PyTorch's data loader.

    Args:
        n: The number of threads.

    Raises:
        ValueError: It is not positive.

    Example:
        >>> ingot.set_threads(4)  # doctest: +SKIP
    """
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"expected a number of threads, got {n!r:.50}")
    if not 1 <= n < 1 << 63:
        raise ValueError(f"expected a positive number of threads, got {n!r:.50}")
    _set(n)


class Begun(Generic[T]):
    """A read that begins on one of the threads that the reads of this process share.

    `end` never waits for a thread: a read that none has taken up by then is made by the caller,
    as is every read that was begun before a fork. A read may thus begin others.

    Args:
        read: The read.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._process = os.getpid()
        self._future: Future[T] | None = None
        pool = _pools.get(self._process) or _pools.setdefault(
            self._process, ThreadPoolExecutor(READS, "ingot-read")
        )
        with suppress(RuntimeError):  # The system has no thread to spare, or the interpreter ends.
            self._future = pool.submit(read)

    def end(self) -> T:
        """Wait for the read and return its result.

        Raises:
            Exception: What the read has raised.
        """
        if self._future is None or os.getpid() != self._process or self._future.cancel():
            return self._read()
        return self._future.result()

    def cancel(self) -> None:
        """Give up the read, unless a thread has taken it up."""
        if self._future is not None and os.getpid() == self._process:
            self._future.cancel()
