"""Bags: what users of Bagz and Granular ask of them. Others use `ingot.open`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import BagWriter as NativeWriter
from ingot._core import Reader as NativeReader
from ingot._core import Stream
from ingot.records.closing import Closing
from ingot.records.paths import StrPath, absolute
from ingot.records.reader import Reader

__all__ = ["BagFile", "BagReader", "BagWriter", "Stream"]

Compression: TypeAlias = Literal["auto", "zstd", "none"]


@dataclass(frozen=True, slots=True)
class BagFile:
    """A bag, and what it does not say itself.

    Attributes:
        path: Its file.
        limits_path: The file that says where its records end; None if its own end does.
        compression: How its records are stored. "auto" goes by its name: those of a `.bagz`
            are zstd frames.
        dictionary: What they were compressed with.
        leading_zero: Whether there is a zero in front of its limits, as in bags of Granular
            up to 0.19.
    """

    path: str
    limits_path: str | None = None
    compression: Compression = "auto"
    dictionary: bytes = b""
    leading_zero: bool = False


class BagReader(Reader):
    """Bags, open for reading as they are said to be, one behind the other."""

    def __new__(cls, files: Sequence[BagFile]) -> Self:
        """Open the files; see the class.

        Raises:
            FileNotFoundError: One of them does not exist.
            CorruptFileError: One of them cannot be a bag.
        """
        files = [_absolute(file) for file in files]
        paths = [file.path for file in files]
        bags = [
            (file.limits_path, file.compression, file.dictionary, file.leading_zero)
            for file in files
        ]
        reader = NativeReader.__new__(cls, paths, partial=False, check=True, bags=bags)
        reader._paths = paths  # noqa: SLF001 -- it is one of this class
        reader._files = files  # noqa: SLF001
        return reader

    _files: list[BagFile]

    def num_records(self) -> npt.NDArray[np.int64]:
        """Return how many records each file has."""
        return np.frombuffer(self._file_rows(), np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._restore_bags, (self._files, self._identity())

    @classmethod
    def _restore_bags(cls, files: Sequence[BagFile], identity: bytes) -> Self:
        reader = cls(files)
        reader._check_identity(identity)
        return reader


def _absolute(file: BagFile) -> BagFile:
    limits = None if file.limits_path is None else str(absolute(file.limits_path))
    return BagFile(
        str(absolute(file.path)),
        limits,
        file.compression,
        file.dictionary,
        file.leading_zero,
    )


class BagWriter(NativeWriter, Closing):
    """Writes a bag that Bagz and Granular can read.

    With its limits at its end the bag appears under its name when it is closed, and an
    exception inside `with` leaves things as they were. With limits of their own both files
    are there from the start; after `flush` those who read them see all records so far, and
    a writer that was killed leaves what it has flushed.

    Args:
        path: The file to write.
        limits_path: The file for the limits; None puts them behind the records.
        mode: "replace" what is there, "create" only what is not, or "append", which takes
            limits of their own, and cuts off what a writer that was killed has left.
        level: Compress each record by itself with zstd at this level, where 0 stands for
            the usual one; None stores records as they are.
        dictionary: What to compress with.
        sync: Wait at `flush` and `close` until the bag is on the device.

    Raises:
        StorageError: Another writer has the bag.
        FileExistsError: It is there already, and the mode is "create".
        FormatError: It is there and cannot go on.
    """

    def __new__(
        cls,
        path: StrPath,
        limits_path: StrPath | None = None,
        *,
        mode: Literal["replace", "create", "append"] = "replace",
        level: int | None = None,
        dictionary: bytes = b"",
        sync: bool = False,
    ) -> Self:
        """Open the file; see the class."""
        limits = None if limits_path is None else str(absolute(limits_path))
        return super().__new__(
            cls,
            str(absolute(path)),
            limits,
            mode=mode,
            level=level,
            dictionary=dictionary,
            sync=sync,
        )
