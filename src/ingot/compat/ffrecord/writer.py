"""`ffrecord.FileWriter`."""

import operator
import os
import warnings
from typing import TYPE_CHECKING, Self, SupportsIndex, TypeAlias

from ingot.compat.ffrecord.errors import CountError, PathError, translated
from ingot.compat.handle import translation
from ingot.formats.ffrecord import FFRecordWriter

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike

StrPath: TypeAlias = str | os.PathLike[str]


class FileWriter:
    """Writes samples to an `.ffr` file that FFRecord itself can read.

    The file appears under its name when it is closed, and replaces an existing file. An
    exception inside `with`, and a writer that is never closed, leave everything as it was,
    unless all announced samples are written: then the file is finished.

    Args:
        fname: The file; its suffix must be `.ffr`.
        n: The number of samples. FFRecord requires it. Here you may omit it; the samples then
            wait in a second file beside the first.
        sync: Whether `close` waits until the file is on the storage device.

    Raises:
        AssertionError: The suffix of the file is not `.ffr`.
        RuntimeError: The file cannot be written; its folder may be missing.
    """

    def __init__(
        self, fname: StrPath, n: SupportsIndex | None = None, *, sync: bool = True
    ) -> None:
        path = os.fspath(fname) if isinstance(fname, os.PathLike) else fname
        if isinstance(path, str) and not path.endswith(".ffr"):
            message = f"{path} does not end with .ffr"
            raise PathError(message, path)
        self._name = path
        self._n = None if n is None else _count(n, path)
        self._count = 0
        with translation(OSError, translated, path):
            self._writer = FFRecordWriter(path, self._n, sync=sync)

    @property
    def n(self) -> int | None:
        """The announced number of samples."""
        return self._n

    @property
    def count(self) -> int:
        """The number of samples written so far."""
        return self._count

    def write_one(self, buf: "BytesLike") -> None:
        """Write a sample: all bytes of anything bytes-like.

        Raises:
            RuntimeError: All announced samples are written, or the file cannot be written.
        """
        if self._count == self._n:
            message = f"{self._name}: Exceed total number of samples: {self._n}"
            raise CountError(message, self._name)
        try:
            self._writer.append(buf)
        except OSError as error:
            raise translated(error, self._name) from error
        self._count += 1

    def close(self) -> None:
        """Finish the file. A second call does nothing.

        Raises:
            RuntimeError: Fewer samples were written than announced; you can still write the
                others. Or the file cannot be written.
        """
        if self._n is not None and self._count != self._n and not self._writer.closed:
            message = (
                f"{self._name}: Number of samples mismatched! "
                f"Wrote {self._count} samples but expected {self._n}"
            )
            raise CountError(message, self._name)
        with translation(OSError, translated, self._name):
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or self._count == self._n:
            self.close()
        else:
            self._writer.abandon()

    def __del__(self) -> None:
        writer = getattr(self, "_writer", None)
        if writer is None or writer.closed:
            return
        if self._count == self._n:
            writer.close()
            return
        writer.abandon()
        message = f"{self._name}: the writer was never closed; its {self._count} samples are lost"
        warnings.warn(message, stacklevel=2)


def _count(n: object, path: str) -> int:
    if not isinstance(n, SupportsIndex):
        message = f"{path}: n must be the number of samples, an integer, got {type(n).__name__}"
        raise TypeError(message)
    if (count := operator.index(n)) < 0:
        message = f"{path}: n must be the number of samples, got {n}"
        raise ValueError(message)
    return count
