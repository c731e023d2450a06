"""What origins of rows in files of other formats share."""

from collections.abc import Sequence

from ingot._core import Rows as NativeRows
from ingot.dataset.read.identity import identity_of


class ForeignFiles:
    """Files of another format, as the origin of rows.

    Attributes:
        paths: The files.
        name: What errors call them: the directory, pattern or file that was opened.
    """

    __slots__ = ()

    paths: Sequence[str]
    name: str

    @property
    def path(self) -> str:
        """The directory, pattern or file that was opened."""
        return self.name

    def metadata_json(self, native: NativeRows) -> str:
        """Return no metadata: these formats have none."""
        return native.metadata_json()

    def nbytes(self, native: NativeRows) -> int:
        """Return the size of the files, without their indexes."""
        return native.figures()[1]

    def identity(self, native: NativeRows) -> str:
        """Return what tells these files from others, and from their successors."""
        return identity_of(native.ids())
