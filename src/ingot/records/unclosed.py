"""Writers that nobody has closed when the interpreter ends."""

import atexit
import os
import sys
from typing import Protocol
from weakref import WeakSet


class Unclosed(Protocol):
    """What a writer has to offer."""

    @property
    def path(self) -> str:
        """Where it writes."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def _settle(self, *, failed: bool) -> str:
        """Commit what was written, or after a failure what can be kept; return what was done."""


_open: WeakSet[Unclosed] = WeakSet()
_processes: set[int] = set()


def watch(writer: Unclosed) -> None:
    """Settle a writer at the end of this process, if it is not closed by then."""
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
            except Exception as error:  # noqa: BLE001 -- nobody is left to whom it could be raised
                done = f"its rows could not be committed: {error}"
            sys.stderr.write(
                f"ingot: {writer.path}: the writer was never closed; {done}. "
                "Use a with block, or call close()\n"
            )
