"""`bagz.Writer`: a bag, open for writing."""

import os
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ingot.compat.bagz.errors import translated
from ingot.compat.bagz.options import LimitsPlacement, WriterOptions
from ingot.compat.bagz.spec import dictionary_of, level_of, limits_path, local
from ingot.errors import counted
from ingot.records.bag import BagWriter
from ingot.records.expand import text_of
from ingot.records.unclosed import watch

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike


class Writer:
    """Writes a bag that Bagz itself can read.

    If the limits are at its end, the bag exists from the start, with the limits in
    `limits.NAME` until it is closed; it replaces an existing bag only when it is closed. If the
    limits are separate, both files exist from the start, and hold what was flushed.

    Records that were written are kept: an exception inside `with` closes the bag. A writer that
    is never closed leaves its records in the bag and their limits in a separate file, with a
    warning.

    Args:
        filename: The file to write, a single one whatever its name.
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
                mode="replace" if self._is_separate else "replace-in-place",
                level=level_of(self._path, options.compression),
                dictionary=dictionary_of(options.compression),
            )
        except OSError as error:
            raise translated(error, self._path) from error
        self._process = os.getpid()
        watch(self)

    @property
    def path(self) -> str:
        """The file to write."""
        return self._path

    @property
    def closed(self) -> bool:
        """Whether the writer is closed."""
        return self._writer.closed

    def write(self, record: "str | BytesLike") -> None:
        """Write a record; text is written as UTF-8.

        Raises:
            ValueError: The file cannot be written, or the writer is closed.
        """
        try:
            self._writer.append(record.encode() if isinstance(record, str) else record)
        except OSError as error:
            raise translated(error, self._path) from error

    def flush(self) -> None:
        """Write all records so far to the file; readers of separate limits then see them.

        Raises:
            ValueError: The file cannot be written, or the writer is closed.
        """
        try:
            self._writer.flush()
        except OSError as error:
            raise translated(error, self._path) from error

    def close(self) -> None:
        """Finish the bag. A second call does nothing.

        Raises:
            ValueError: The file cannot be written.
        """
        try:
            self._writer.close()
        except OSError as error:
            raise translated(error, self._path) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _settle(self, *, failed: bool) -> str:
        """Keep all records without closing the bag; return where they are."""
        del failed
        count = len(self._writer)
        done = f"its {counted(count, 'record')} {'is' if count == 1 else 'are'} there"
        if self._is_separate:
            self._writer.close()
            return done
        self._writer.flush()
        records = Path(self._path).resolve()
        limits = str(limits_path(self._path, LimitsPlacement.SEPARATE))
        if Path(f"{records}.part").exists():  # It was to replace another bag.
            Path(f"{records}.part").replace(records)
            Path(f"{records}.spool").replace(limits)
        with suppress(FileNotFoundError):  # The writer has nothing left to remove.
            self._writer.abandon()
        return f"{done}, and their limits in {limits}"

    def __del__(self) -> None:
        if getattr(self, "_process", None) == os.getpid() and not self.closed:
            message = f"{self._path}: the writer was never closed; {self._settle(failed=False)}"
            warnings.warn(message, stacklevel=2)
