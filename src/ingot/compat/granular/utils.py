"""`granular.utils`: objects that are closed at the end of a `with` block."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from ingot.errors import ClosedError


class Closing(ABC):
    """Something that can be closed; `closed` says whether it is."""

    def __init__(self) -> None:
        self.closed = False

    @abstractmethod
    def _close(self) -> None:
        """Release resources. Called once."""

    def close(self) -> None:
        """Close it. A second call does nothing."""
        if not self.closed:
            self.closed = True
            self._close()

    def _check_open(self) -> None:
        if self.closed:
            message = f"this {type(self).__name__} is closed"
            raise ClosedError(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"closing also failed: {failure}")
