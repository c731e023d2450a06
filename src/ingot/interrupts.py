"""Handlers of signals: which run later, and what Ctrl-C does while the command is loaded."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM")
_HANDLED = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
"""The signals that programs have handlers for."""

EXIT_CODE = 130
"""What a shell makes of SIGINT."""


def is_command() -> bool:
    """Return whether this process was started as `ingot` or `python -m ingot`."""
    started = sys.orig_argv[1:]
    if "-m" in started and sys.argv[:1] == ["-m"]:
        return started[started.index("-m") + 1 :][:1] == ["ingot"]
    script = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 -- it loads fast
    return script in {"ingot", "ingot.exe"}


def end_quietly() -> None:
    """Have Ctrl-C end the process, unless it is ignored or somebody else's to handle."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Have Ctrl-C raise KeyboardInterrupt as usual."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os._exit(EXIT_CODE)


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
