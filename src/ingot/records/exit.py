"""How readers and writers end: with a `with` block, or at the latest with the process."""

import atexit
import os
import sys
import warnings
from abc import abstractmethod
from types import TracebackType
from typing import Self
from weakref import WeakSet


class Closable:
    """Closes at the end of a `with` block."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Close the files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Abandonable(Closable):
    """Closes at the end of a `with` block, and gives up if an exception ends the block."""

    __slots__ = ()

    @abstractmethod
    def abandon(self) -> object:
        """Leave things as they were."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()


class Watched(Abandonable):
    """A writer that is settled if its user never closes it: when it is collected, or at exit.

    Attributes:
        _process: The process that has opened it.
    """

    _process: int

    @property
    @abstractmethod
    def path(self) -> str:
        """The absolute path."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether it is closed."""

    @abstractmethod
    def _settle(self, *, failed: bool) -> str:
        """Commit what was written, or after a failure what can be kept; return a description.

        Args:
            failed: Whether an exception is, or may be, the reason that it was not closed.
        """

    def _watch(self) -> None:
        """Settle this writer when the process exits, if it is not closed by then."""
        self._process = os.getpid()
        if self._process not in _processes:
            _processes.clear()
            _processes.add(self._process)
            _open.clear()
            atexit.register(_settle_all, self._process)
        _open.add(self)

    def __del__(self) -> None:
        if getattr(self, "_process", None) == os.getpid() and not self.closed:
            done = self._settle(failed=True)
            warnings.warn(
                f"{self.path}: the writer was never closed; {done}", ResourceWarning, stacklevel=2
            )


_open: WeakSet[Watched] = WeakSet()
_processes: set[int] = set()


def _settle_all(process: int) -> None:
    if process != os.getpid():
        return
    failed = getattr(sys, "last_exc", getattr(sys, "last_value", None)) is not None
    for writer in list(_open):
        if not writer.closed:
            try:
                done = writer._settle(failed=failed)  # noqa: SLF001
            except Exception as error:  # noqa: BLE001 -- no caller is left to catch it
                done = f"its rows could not be committed: {error}"
            sys.stderr.write(
                f"ingot: {writer.path}: the writer was never closed; {done}. "
                "Use a with block, or call close()\n"
            )
