"""Objects that are closed at the end of a `with` block."""

from abc import abstractmethod
from typing import Self


class Closing:
    """Closes at the end of a `with` block, whatever ends it."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
