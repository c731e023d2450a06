"""How far a long task is."""

import sys
from collections.abc import Callable

from ingot.records.reader import Progress

_LINES_MAX = 100


def reporter(progress: Progress, verb: str) -> Callable[[int, int], object]:
    """Return what is to be called with the files done and their total."""
    if progress is None:
        return _ignore
    if progress is not True:
        return progress

    def write(done: int, total: int) -> None:
        if done == total or done % (total // _LINES_MAX + 1) == 0:
            end = "\n" if done == total else ""
            sys.stderr.write(f"\r{verb} {done} of {total} files{end}")
            sys.stderr.flush()

    return write


def _ignore(_done: int, _total: int) -> None:
    pass
