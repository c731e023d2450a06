"""`bagz.Writer`: a bag, open for writing."""

import os
import warnings
from typing import TYPE_CHECKING, Self

from ingot.compat.bagz.errors import translated
from ingot.compat.bagz.options import LimitsPlacement, WriterOptions
from ingot.compat.bagz.spec import dictionary_of, level_of, limits_path, local
from ingot.records.bag import BagWriter
from ingot.records.paths import text_of

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike


class Writer:
    """Writes a bag that Bagz itself can read.

    With its limits at its end the bag appears under its name when it is closed, in place of
    what was there; an exception inside `with` leaves things as they were. With limits of
    their own both files are there from the start, and hold what was flushed.

    Args:
        filename: The file to write: one, whatever its name.
        options: How to write; see `Writer.Options`.

    Raises:
        ValueError: The file cannot be written.
    """

    Options = WriterOptions

    def __init__(
        self, filename: str | os.PathLike[str], options: WriterOptions | None = None
    ) -> None:
        options = WriterOptions() if options is None else options
        self._path = local(text_of(filename))
        self._is_separate = options.limits_placement is LimitsPlacement.SEPARATE
        try:
            self._writer = BagWriter(
                self._path,
                limits_path(self._path, options.limits_placement),
                level=level_of(self._path, options.compression),
                dictionary=dictionary_of(options.compression),
            )
        except OSError as error:
            raise translated(error, self._path) from error

    def write(self, record: "str | BytesLike") -> None:
        """Write a record; text is written as UTF-8.

        Raises:
            ValueError: The file cannot be written, or was closed.
        """
        try:
            self._writer.append(record.encode() if isinstance(record, str) else record)
        except OSError as error:
            raise translated(error, self._path) from error

    def flush(self) -> None:
        """Bring all records so far into the file: who reads separate limits sees them.

        Raises:
            ValueError: The file cannot be written, or was closed.
        """
        try:
            self._writer.flush()
        except OSError as error:
            raise translated(error, self._path) from error

    def close(self) -> None:
        """Complete the bag. A second call does nothing.

        Raises:
            ValueError: The file cannot be written.
        """
        try:
            self._writer.close()
        except OSError as error:
            raise translated(error, self._path) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or self._is_separate:
            self.close()
        else:
            self._writer.abandon()

    def __del__(self) -> None:
        writer = getattr(self, "_writer", None)
        if writer is None or writer.closed:
            return
        num_records = len(writer)
        writer.abandon()
        message = f"{self._path}: never closed, so it has not all of its {num_records} records"
        warnings.warn(message, stacklevel=2)
