"""Locks that the child of a fork finds free, whatever threads of its parent held."""

import os
from contextlib import AbstractContextManager
from threading import RLock

__all__ = ["ProcessLock"]


class ProcessLock:
    """A lock for each process. `with lock.own:` takes that of this one.

    In the child of a fork, the thread that held the lock of the parent is not there to release
    it. It has left what the lock guards as it was at that moment.
    """

    def __init__(self) -> None:
        self._locks: dict[int, AbstractContextManager[bool]] = {}

    @property
    def own(self) -> AbstractContextManager[bool]:
        """The lock of this process, which one thread may take several times."""
        process = os.getpid()
        return self._locks.get(process) or self._locks.setdefault(process, RLock())
