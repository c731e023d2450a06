"""Progress on standard error."""

import sys
import time
from collections.abc import Callable
from typing import Literal, TypeAlias

Report: TypeAlias = Callable[[int, int], object]
Progress: TypeAlias = Report | Literal[True] | None

_PAUSE_S = 0.2
_PAUSE_PLAIN_S = 10.0


def reporter(progress: Progress, verb: str, noun: str) -> Report | None:
    """Return the function to call with the work done and the total; None for no reports.

    Args:
        progress: Such a function, or True for a line on standard error, which is updated in
            place on a terminal and repeated from time to time elsewhere.
        verb: What was done, such as "verified".
        noun: What it was done to, such as "records".
    """
    if progress is not True:
        return progress
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    pause = _PAUSE_S if is_terminal else _PAUSE_PLAIN_S
    following = time.monotonic() + pause

    def write(done: int, total: int) -> None:
        nonlocal following
        if done < total and time.monotonic() < following:
            return
        following = time.monotonic() + pause
        text = f"{verb} {done:,} of {total:,} {noun}"
        text = f"\r{text}\x1b[K" if is_terminal else text
        sys.stderr.write(text + "\n" * (done == total or not is_terminal))
        sys.stderr.flush()

    return write
