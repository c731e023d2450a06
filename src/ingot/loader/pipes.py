"""Pipes to worker processes, whose ends no other process inherits.

The end of a worker is noticed when its end of the pipe is closed. So no other child of a fork,
of this loader or of anybody else, may have that end too.
"""

import os
import threading
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, TypeAlias

Pipe: TypeAlias = "Connection[Any, Any]"

_forking = threading.RLock()
_ends: "weakref.WeakSet[Pipe]" = weakref.WeakSet()
_kept: list[Pipe] = []


def connected(
    context: BaseContext, start: Callable[[Pipe], BaseProcess]
) -> tuple[Pipe, BaseProcess]:
    """Return this process's end of a new pipe, and the process that has the other end.

    Args:
        context: How processes are started.
        start: Starts the process with its end.
    """
    with _forking:
        ours, theirs = context.Pipe()
        _ends.update((ours, theirs))
        _kept[:] = [theirs]
        try:
            with theirs:
                return ours, start(theirs)
        finally:
            _kept.clear()


def _lock() -> None:
    _forking.acquire()


def _unlock() -> None:
    _forking.release()


def _forget() -> None:
    """Close all ends in a child, but for its own."""
    global _forking  # noqa: PLW0603 -- a thread that is not here may have the old one
    _forking = threading.RLock()
    for end in list(_ends):
        if not any(end is one for one in _kept):
            end.close()
    _ends.clear()


os.register_at_fork(before=_lock, after_in_parent=_unlock, after_in_child=_forget)
