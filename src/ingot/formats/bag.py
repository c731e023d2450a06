"""Bags, the files of Bagz and Granular: a reader for bags of any layout, and a writer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import Reader as NativeReader
from ingot._core import RecordWriter, Stream, write_bag
from ingot.records.exit import Abandonable
from ingot.records.expand import StrPath, absolute
from ingot.records.reader import Reader

__all__ = ["BagFile", "BagReader", "BagWriter", "Stream"]

Compression: TypeAlias = Literal["auto", "zstd", "none"]


@dataclass(frozen=True, slots=True)
class BagFile:
    """A bag, and properties that its file does not record.

    Attributes:
        path: Its file.
        limits_path: The file that holds the ends of its records; None if they are at the end of
            the bag itself.
        compression: How its records are stored. "auto" goes by the suffix: records of a `.bagz`
            file are zstd frames.
        dictionary: The dictionary that they were compressed with.
        leading_zero: Whether its limits begin with a zero, as in bags of Granular up to 0.19.
    """

    path: str
    limits_path: str | None = None
    compression: Compression = "auto"
    dictionary: bytes = b""
    leading_zero: bool = False


class BagReader(Reader):
    """Bags, open for reading with the given properties, concatenated.

    `ingot.open` opens bags whose limits are at their end and whose compression their suffix tells.

    Args:
        files: The bags.
    """

    def __new__(cls, files: Sequence[BagFile]) -> Self:
        """Open the files; see the class.

        Raises:
            FileNotFoundError: One of them does not exist.
            CorruptFileError: One of them is not a valid bag.
        """
        files = [
            replace(
                file,
                path=str(absolute(file.path)),
                limits_path=file.limits_path and str(absolute(file.limits_path)),
            )
            for file in files
        ]
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

    @property
    def nbytes(self) -> int:
        """The size of the files, with those of limits."""
        stats = self.stats()
        is_pair = any(file.limits_path is not None for file in self._files)
        return stats.file_bytes + ((stats.index_bytes or 0) if is_pair else 0)

    def num_records(self) -> npt.NDArray[np.int64]:
        """Return the number of records in each file."""
        return np.frombuffer(self._file_rows(), np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._restore_bags, (self._files, self._identity())

    @classmethod
    def _restore_bags(cls, files: Sequence[BagFile], identity: bytes) -> Self:
        reader = cls(files)
        reader._check_identity(identity)
        return reader


class BagWriter(RecordWriter, Abandonable):
    """Writes a bag that Bagz and Granular can read.

    If the limits are at its end, the bag appears under its name when it is closed, and an
    exception inside `with` leaves everything as it was. If the limits have their own file, both
    files exist from the start. After `flush`, readers see all records so far, and a writer that
    is killed leaves what it has flushed.

    Args:
        path: The file to write.
        limits_path: The file for the limits; None appends them to the bag.
        mode: "replace" replaces an existing bag when this one is closed. "replace-in-place"
            does so, too, but a bag that is new, or replaces an empty file, exists from the
            start, with its limits in `limits.NAME` until it is closed. "create" refuses an
            existing bag. "append" appends to it and cuts off what a killed writer left; it
            requires `limits_path`.
        level: Compress each record on its own with zstd at this level, where 0 means the
            default level; None stores records uncompressed.
        dictionary: The dictionary to compress with.
        sync: Whether `flush` and `close` wait until the bag is on the storage device.

    Raises:
        StorageError: Another writer has the bag open.
        FileExistsError: The bag exists, and the mode is "create".
        FormatError: The existing bag cannot be appended to.
    """

    def __new__(
        cls,
        path: StrPath,
        limits_path: StrPath | None = None,
        *,
        mode: Literal["replace", "replace-in-place", "create", "append"] = "replace",
        level: int | None = None,
        dictionary: bytes = b"",
        sync: bool = False,
    ) -> Self:
        """Open the file; see the class."""
        limits = None if limits_path is None else str(absolute(limits_path))
        native = write_bag(
            str(absolute(path)), limits, mode=mode, level=level, dictionary=dictionary, sync=sync
        )
        return super().__new__(cls, native)

    @property
    def size(self) -> int:
        """Bytes of the records so far, as they are stored, and of their limits."""
        return self._size() or 0

    def flush(self) -> None:
        """Write all records so far to the files."""
        self._flush()
