"""Files of other formats that the engine reads, as the origin of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ingot._core import Rows as NativeRows
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.source import identity_of
from ingot.errors import FormatError


@dataclass(frozen=True, slots=True)
class ForeignFiles:
    """Files of another format, as the origin of rows.

    Attributes:
        format: The name of the format.
        paths: The files.
        path: What errors call them: the directory, pattern or file that was opened.
        opener: Opens them again, in another process.
        arguments: What the opener is given.
    """

    format: str
    paths: Sequence[str]
    path: str
    opener: Callable[..., IngotSource | None]
    arguments: tuple[Any, ...]

    def metadata_json(self, native: NativeRows) -> str:
        """Return no metadata: these formats have none."""
        return native.metadata_json()

    def nbytes(self, native: NativeRows) -> int:
        """Return the size of the files, without their indexes."""
        return native.figures()[1]

    def identity(self, native: NativeRows) -> str:
        """Return what tells these files from others, and from their successors."""
        return identity_of(native.ids())

    def again(
        self, native: NativeRows, *, allow_pickle: bool
    ) -> tuple[Callable[..., IngotSource], tuple[Any, ...]]:
        """Return what opens the same files again."""
        del allow_pickle
        return _reopen, (self.path, self.opener, self.arguments, self.identity(native))


def _reopen(
    path: str, opener: Callable[..., IngotSource | None], arguments: tuple[Any, ...], identity: str
) -> IngotSource:
    """Open the files that were pickled.

    Raises:
        FormatError: They were replaced.
    """
    opened = opener(*arguments)
    if opened is None or opened.identity != identity:
        message = f"{path}: the files were replaced since the data set was pickled"
        raise FormatError(message, path)
    return opened
