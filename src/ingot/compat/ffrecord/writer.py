"""`ffrecord.FileWriter`."""

import operator
import os
import warnings
from typing import TYPE_CHECKING, Self, SupportsIndex, TypeAlias

from ingot.compat.ffrecord.errors import CountError, PathError
from ingot.records.ffrecord import FFRecordWriter
from ingot.records.paths import absolute, text_of

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike

StrPath: TypeAlias = str | os.PathLike[str]


class FileWriter:
    """Writes samples to an `.ffr` file that FFRecord itself can read.

    The file appears under its name when it is closed, in place of what was there; an
    exception inside `with` leaves things as they were.

    Args:
        fname: The file, named `.ffr`.
        n: The number of samples. FFRecord must know; here it may be left out, and the
            samples then wait in a second file beside the first.
        sync: Wait at `close` until the file is on the device.

    Raises:
        AssertionError: The file is not named `.ffr`.
    """

    def __init__(
        self, fname: StrPath, n: SupportsIndex | None = None, *, sync: bool = True
    ) -> None:
        path = text_of(fname)
        if not path.endswith(".ffr"):
            message = f"{path} does not end with .ffr"
            raise PathError(message, path)
        self._name = path
        self._n = None if n is None else _count(n, path)
        self._count = 0
        self._writer = FFRecordWriter(str(absolute(path)), self._n, sync)

    @property
    def n(self) -> int | None:
        """The number of samples that was announced."""
        return self._n

    @property
    def count(self) -> int:
        """The number of samples written so far."""
        return self._count

    def write_one(self, buf: "BytesLike") -> None:
        """Write a sample: all bytes of anything bytes-like.

        Raises:
            RuntimeError: All samples that were announced are written.
        """
        if self._count == self._n:
            message = f"{self._name}: Exceed total number of samples: {self._n}"
            raise CountError(message, self._name)
        self._writer.append(buf)
        self._count += 1

    def close(self) -> None:
        """Complete the file. A second call does nothing.

        Raises:
            RuntimeError: Fewer samples were written than announced. The rest can still be.
        """
        if self._n is not None and self._count != self._n and not self._writer.closed:
            message = (
                f"{self._name}: Number of samples mismatched! "
                f"Wrote {self._count} samples but expected {self._n}"
            )
            raise CountError(message, self._name)
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
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
        message = f"{self._name}: never closed, so its {self._count} samples are lost"
        warnings.warn(message, stacklevel=2)


def _count(n: object, path: str) -> int:
    if not isinstance(n, SupportsIndex):
        message = f"{path}: n is the number of samples, an integer, not {type(n).__name__}"
        raise TypeError(message)
    if (count := operator.index(n)) < 0:
        message = f"{path}: n is the number of samples, not {n}"
        raise ValueError(message)
    return count
