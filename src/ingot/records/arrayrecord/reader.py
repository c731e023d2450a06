"""ArrayRecord files, open for reading."""

import json
from collections.abc import Sequence
from typing import Self

from ingot._core import Reader as NativeReader
from ingot.records.reader import Reader


class ArrayRecordReader(Reader):
    """ArrayRecord files, open for reading, with access to the options of their writer."""

    @classmethod
    def joined(cls, parts: Sequence[Reader]) -> Self:
        """Return the files of several readers as one sequence, without opening them again."""
        paths = [path for part in parts for path in part.paths]
        reader = NativeReader.__new__(cls, paths, partial=False, check=True, parts=parts)
        reader._paths = paths  # noqa: SLF001 -- it is one of this class
        reader._arguments = (paths, False, True)  # noqa: SLF001
        return reader

    def writer_options(self, file: int) -> str | None:
        """Return the options that a file was written with; None if it does not record them."""
        options: str | None = json.loads(self._info(file)).get("options")
        return options

    def group_size(self, file: int) -> int | None:
        """Return the number of records in each chunk of a file; None if they differ."""
        size: int | None = json.loads(self._info(file)).get("group_size")
        return size
