"""Writers that finish their file at the end of a `with` block, and give up on an exception."""

from abc import abstractmethod
from types import TracebackType
from typing import Self


class Closing:
    """Closes at the end of a `with` block; abandons if an exception ends it."""

    @abstractmethod
    def close(self) -> None:
        """Finish the file."""

    @abstractmethod
    def abandon(self) -> None:
        """Leave things as they were."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()
