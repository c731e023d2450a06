"""ArrayRecord files: a reader that knows how they were written, and a writer."""

import json
from collections.abc import Sequence
from typing import Literal, Self

from ingot._core import Reader as NativeReader
from ingot._core import RecordWriter, write_arrayrecord
from ingot.records.exit import Abandonable
from ingot.records.expand import StrPath, absolute
from ingot.records.reader import Reader

__all__ = ["ArrayRecordReader", "ArrayRecordWriter"]

_LEVELS = {"zstd": 3, "brotli": 6, "snappy": 1, "none": 0}


class ArrayRecordReader(Reader):
    """ArrayRecord files, open for reading, as `ingot.open` opens them.

    It also returns how each file was written.

    Args:
        source: As for `ingot.open`.
        verify: Whether to verify checksums.
    """

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


class ArrayRecordWriter(RecordWriter, Abandonable):
    """Writes an ArrayRecord file that ArrayRecord itself can read.

    The file appears under its name when it is closed, and replaces an existing file. An
    exception inside `with` leaves everything as it was. All cores compress records.

    Args:
        path: The file to write.
        group_size: How many records are compressed together. More than one makes files
            smaller and random reads slower.
        compression: "zstd", "brotli", "snappy", or None.
        level: The compression level: -131072 to 22 for zstd, 0 to 11 for brotli.
        window_log: Logarithm of the window size: 10 to 31 for zstd, 10 to 30 for brotli.
        transpose: Split records that are protocol buffers by their fields.
        transpose_bucket_size: How many bytes of fields are compressed together.
        pad_to_block_boundary: Begin each group at a multiple of 64 KiB.
        sync: Whether `close` waits until the file is on the storage device.

    Raises:
        ValueError: An argument is out of range.

    Example:
        >>> with ArrayRecordWriter("x.array_record", group_size=16) as w:  # doctest: +SKIP
        ...     w.append(b"a record")
    """

    def __new__(
        cls,
        path: StrPath,
        *,
        group_size: int = 1,
        compression: Literal["zstd", "brotli", "snappy"] | None = "zstd",
        level: int | None = None,
        window_log: int | None = None,
        transpose: bool = False,
        transpose_bucket_size: int = 256,
        pad_to_block_boundary: bool = False,
        sync: bool = False,
    ) -> Self:
        """Open the file; see the class."""
        codec = "none" if compression is None else compression
        if codec not in _LEVELS:
            message = f'compression must be "zstd", "brotli", "snappy" or None, got {compression!r}'
            raise ValueError(message)
        if window_log is not None and codec in ("none", "snappy"):
            message = f"compression={compression!r} does not take window_log"
            raise ValueError(message)
        native = write_arrayrecord(
            str(absolute(path)),
            group_size=group_size,
            codec=codec,
            level=_LEVELS[codec] if level is None else level,
            window_log=window_log,
            transpose=transpose_bucket_size if transpose else None,
            pad=pad_to_block_boundary,
            sync=sync,
        )
        return super().__new__(cls, native)
