"""Writers that are still open when the interpreter exits."""

import atexit
import os
import sys
from typing import Protocol
from weakref import WeakSet


class Unclosed(Protocol):
    """The interface of a writer that can be closed at exit."""

    @property
    def path(self) -> str:
        """Where it writes."""

    @property
    def closed(self) -> bool:
        """Whether it is closed."""

    def _settle(self, *, failed: bool) -> str:
        """Commit what was written, or after a failure what can be kept; return a description."""


_open: WeakSet[Unclosed] = WeakSet()
_processes: set[int] = set()


def watch(writer: Unclosed) -> None:
    """Settle a writer when this process exits, if it is not closed by then."""
    if os.getpid() not in _processes:
        _processes.clear()
        _processes.add(os.getpid())
        _open.clear()
        atexit.register(_settle_all, os.getpid())
    _open.add(writer)


def _settle_all(process: int) -> None:
    if process != os.getpid():
        return
    failed = getattr(sys, "last_exc", getattr(sys, "last_value", None)) is not None
    for writer in list(_open):
        if not writer.closed:
            try:
                done = writer._settle(failed=failed)  # noqa: SLF001
            except Exception as error:  # noqa: BLE001 -- nobody is left to catch it
                done = f"its rows could not be committed: {error}"
            sys.stderr.write(
                f"ingot: {writer.path}: the writer was never closed; {done}. "
                "Use a with block, or call close()\n"
            )
