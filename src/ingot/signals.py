"""Handlers of signals that run later."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_HANDLED: tuple[int, ...] = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
)
"""The signals that programs have handlers for."""


@contextmanager
def deferred() -> Iterator[None]:
    """Let handlers of signals, such as that of Ctrl-C, wait until the block is left.

    For libraries that break when Python code under them raises. It should be left soon. Only
    the main thread runs handlers, so it changes nothing on others.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: dict[int, Any] = {}
    before: dict[int, Any] = {}
    try:
        for number in _HANDLED:
            handler = signal.getsignal(number)
            if callable(handler) and not isinstance(handler, signal.Handlers):
                before[number] = handler
                signal.signal(number, came.__setitem__)
        yield
    finally:
        _restore(before)
        for number, frame in came.items():
            before[number](number, frame)


def _restore(handlers: dict[int, Any]) -> None:
    """Set handlers, also if one of them is called at once and raises."""
    left = dict(handlers)
    try:
        while left:
            number = next(iter(left))
            signal.signal(number, left[number])
            del left[number]
    finally:
        if left:
            _restore(left)
