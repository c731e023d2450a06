"""`bagz.Writer`: a bag, open for writing."""

import os
import warnings
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ingot.compat.bagz.options import LimitsPlacement, WriterOptions
from ingot.compat.bagz.spec import dictionary_of, level_of, limits_path, local, translated
from ingot.compat.handle import Closing, subject, translation
from ingot.formats.bag import BagWriter

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike


class Writer(Closing):
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
        self._path = local(filename)
        is_separate = options.limits_placement is LimitsPlacement.SEPARATE
        with translation(OSError, translated, self._path):
            self._writer = BagWriter(
                self._path,
                limits_path(self._path, options.limits_placement),
                mode="replace" if is_separate else "replace-in-place",
                level=level_of(self._path, options.compression),
                dictionary=dictionary_of(options.compression),
            )
        left = self._writer, self._path, is_separate, os.getpid()
        self._never_closed = weakref.finalize(self, _settle, *left)

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
        with translation(OSError, translated, self._path):
            self._writer.flush()

    def close(self) -> None:
        """Finish the bag. A second call does nothing.

        Raises:
            ValueError: The file cannot be written.
        """
        self._never_closed.detach()
        with translation(OSError, translated, self._path):
            self._writer.close()


def _settle(writer: BagWriter, path: str, is_separate: bool, process: int) -> None:
    """Keep all records of a writer that was never closed, and warn; the bag is not finished."""
    if writer.closed or process != os.getpid():
        return
    done = f"its {subject(len(writer), 'record')} there"
    if is_separate:
        writer.close()
    else:
        done += f", and their limits in {_leave_limits(writer, path)}"
    warnings.warn(f"{path}: the writer was never closed; {done}", stacklevel=2)


def _leave_limits(writer: BagWriter, path: str) -> str:
    """Leave the limits of an unfinished bag in a separate file; return which."""
    writer.flush()
    records = Path(path).resolve()
    limits = str(limits_path(path, LimitsPlacement.SEPARATE))
    if Path(f"{records}.part").exists():  # It was to replace another bag.
        Path(f"{records}.part").replace(records)
        Path(f"{records}.spool").replace(limits)
    with suppress(FileNotFoundError):  # The writer has nothing left to remove.
        writer.abandon()
    return limits
