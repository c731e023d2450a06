"""What origins of rows in files of other formats share."""

import hashlib
from collections.abc import Sequence

from ingot._core import Rows as NativeRows


class ForeignFiles:
    """Files of another format, as the origin of rows.

    Attributes:
        paths: The files.
        folder: The directory that is the data set, if it is one.
    """

    __slots__ = ()

    paths: Sequence[str]
    folder: str | None

    @property
    def path(self) -> str:
        """The directory, or the first file."""
        return self.folder or self.paths[0]

    def metadata_json(self, native: NativeRows) -> str:
        """Return no metadata: these formats have none."""
        return native.metadata_json()

    def nbytes(self, native: NativeRows) -> int:
        """Return the size of the files, without their indexes."""
        return native.figures()[1]

    def identity(self, native: NativeRows) -> str:
        """Return what tells these files from others, and from their successors."""
        return hashlib.sha256(" ".join(native.ids()).encode()).hexdigest()[:32]
