"""`ffrecord.fileio`: readers, writers, and file system checks."""

import fcntl
import operator
import os
import struct
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.compat.ffrecord.errors import (
    CountError,
    PathError,
    ReaderClosedError,
    SampleError,
    SampleIndexError,
    translated,
)
from ingot.compat.handle import Closing, Reopening, subject, translation
from ingot.errors import ClosedError, CorruptFileError
from ingot.formats.ffrecord import FFRecordReader, FFRecordWriter

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike

__all__ = ["FileReader", "FileWriter", "checkFsAlign"]

StrPath: TypeAlias = str | os.PathLike[str]
Sample: TypeAlias = npt.NDArray[np.uint8]

_ALIGNS = 0x80046664
_CAUGHT = (CorruptFileError, IndexError, ClosedError)
_LEGACY = "an old FFRecord file without a checksum of its index; rewrite it to add one"


class FileReader(Closing, Reopening):
    """Reads samples of one or more `.ffr` files, in any order, as arrays of bytes.

    Forked processes and several threads may use it at the same time. The arrays of one `read`
    share memory: copy an array that outlives the others. Pickling stores the files, which are
    opened again, and all attributes of a subclass.

    Args:
        fname: A file, a directory (its `.ffr` files, sorted by name), or a list of files.
        check_data: Whether to verify the checksums of indices and samples.

    Raises:
        AssertionError: A file does not exist or is not named `.ffr`.
        RuntimeError: A file is damaged.
    """

    OPENED = ("_reader",)

    def __init__(self, fname: StrPath | Sequence[StrPath], check_data: bool = True) -> None:
        self._fnames = _resolve(fname)
        self._check_data = bool(check_data)
        self._open()

    def _open(self) -> None:
        with translation(_CAUGHT, _translated):
            self._reader = FFRecordReader(self._fnames, verify=self._check_data)
        self._n = len(self._reader)
        for file in self._reader.legacy_files():
            warnings.warn(f"{self._fnames[file]}: {_LEGACY}", stacklevel=3)

    @property
    def n(self) -> int:
        """The number of samples in all files."""
        return self._n

    @property
    def fnames(self) -> list[str]:
        """The files, in order."""
        return list(self._fnames)

    @property
    def check_data(self) -> bool:
        """Whether checksums are verified."""
        return self._check_data

    def read(self, indices: Iterable[SupportsIndex]) -> list[Sample]:
        """Return the samples at `indices`, in that order, in one native read."""
        if isinstance(indices, set | frozenset | Iterator):
            indices = list(indices)
        try:
            return list(self._reader.read(indices))
        except _CAUGHT as error:
            raise _translated(error) from error

    def read_one(self, index: SupportsIndex) -> Sample:
        """Return the sample at `index`."""
        try:
            return np.frombuffer(bytearray(self._reader[operator.index(index)]), np.uint8)
        except _CAUGHT as error:
            raise _translated(error) from error

    def validate(self) -> None:
        """Verify the checksum of every index; `ingot.Reader.verify` verifies the samples.

        Raises:
            RuntimeError: An index is damaged.
        """
        for file, name in enumerate(self._fnames):
            with translation(_CAUGHT, _translated):
                intact = self._reader.is_intact(file)
            if not intact:
                message = f"{name}: checksum of metadata mismached!"
                raise SampleError(message, name, offset=0)

    def get_offsets(self, file_index: int) -> npt.NDArray[np.int64]:
        """Return where each sample of a file begins, followed by the size of the file."""
        with translation(_CAUGHT, _translated):
            offsets = self._reader.offsets(file_index)
        return np.append(offsets, Path(self._fnames[file_index]).stat().st_size)

    def get_checksums(self, file_index: int) -> npt.NDArray[np.uint32]:
        """Return the CRC-32 of each sample of a file."""
        with translation(_CAUGHT, _translated):
            return self._reader.checksums(file_index)

    def close(self) -> None:
        """Close the files. A second call does nothing."""
        self._reader.close()

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: SupportsIndex) -> Sample: ...
    @overload
    def __getitem__(self, index: Iterable[SupportsIndex]) -> list[Sample]: ...
    def __getitem__(
        self, index: SupportsIndex | Iterable[SupportsIndex]
    ) -> "Sample | list[Sample]":
        if isinstance(index, int) or not isinstance(index, Iterable):
            return self.read_one(index)
        return self.read(index)

    def __repr__(self) -> str:
        return f"<FileReader {self._fnames!r}, {self._n} samples>"


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
        lost = subject(self._count, "sample")
        message = f"{self._name}: the writer was never closed; its {lost} lost"
        warnings.warn(message, stacklevel=2)


def checkFsAlign(fd: int) -> bool:  # noqa: N802
    """Return whether the file system of a descriptor aligns reads by itself."""
    answer = bytearray(4)
    try:
        failed = fcntl.ioctl(fd, _ALIGNS, answer)
    except (OSError, ValueError):
        return False
    return failed == 0 and struct.unpack("=I", answer) == (1,)


def _translated(error: CorruptFileError | IndexError | ClosedError) -> Exception:
    if isinstance(error, CorruptFileError):
        message = str(error)
        if "checksum mismatch" in message:
            what = "metadata" if error.record is None else f"Sample {error.record}"
            message = f"{message} ({what}: checksum mismached!)"
        return SampleError(message, error.path, record=error.record, offset=error.offset)
    if isinstance(error, ClosedError):
        return ReaderClosedError(f"{error} (FileReader has been closed.)", error.path)
    bound = "< -number" if "index -" in str(error) else ">= number"
    return SampleIndexError(f"{error} (index {bound} of samples)")


def _resolve(fname: StrPath | Sequence[StrPath]) -> list[str]:
    if isinstance(fname, list | tuple):
        names = [_absolute(one) for one in fname]
    elif isinstance(fname, str | os.PathLike):
        path = Path(_absolute(fname))
        names = sorted(str(one) for one in path.glob("*.ffr")) if path.is_dir() else [str(path)]
    else:
        message = "fname must be str, os.PathLike, list or tuple"
        raise TypeError(message)
    if not names:
        message = f"{fname}: At least one .ffr file as input"
        raise PathError(message, str(fname))
    for name in names:
        one = Path(name)
        if not one.is_file() or one.suffix != ".ffr":
            why = "does not end with .ffr" if one.is_file() else "is not a file"
            message = f"{name} {why if one.exists() else 'does not exist'}"
            raise PathError(message, name)
    return names


def _absolute(path: StrPath) -> str:
    """Return an absolute path; a leading `~` is the home directory."""
    return str(Path(os.path.expanduser(path)).absolute())  # noqa: PTH111 -- no user is no error


def _count(n: object, path: str) -> int:
    if not isinstance(n, SupportsIndex):
        message = f"{path}: n must be the number of samples, an integer, got {type(n).__name__}"
        raise TypeError(message)
    if (count := operator.index(n)) < 0:
        message = f"{path}: n must be the number of samples, got {n}"
        raise ValueError(message)
    return count
