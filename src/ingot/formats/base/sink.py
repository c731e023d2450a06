"""The base classes of sinks, which take what is converted to a format."""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, NoReturn

from ingot.dataset.atomic import writing
from ingot.dataset.spec import Field
from ingot.dataset.write.shards import Compression
from ingot.formats.base.content import Content, Piece
from ingot.locks import cached_property
from ingot.records.progress import Progress, Report, reporter

_THREADS_MAX = 4


@dataclass(frozen=True, slots=True)
class Writing:
    """How a target is written; see `ingot.convert`."""

    compression: Compression = "auto"
    sync: bool = True
    shard_bytes: int = 10**9
    check: bool = True
    workers: int | None = None
    resume: bool = True
    progress: Progress = None

    @property
    def threads(self) -> int:
        """How many threads read ahead."""
        cores = min(_THREADS_MAX, os.cpu_count() or 1)
        return max(1, cores if self.workers is None else self.workers)

    def report(self, verb: str) -> Report | None:
        """Return the function to report progress to."""
        return reporter(self.progress, verb, "records")


class Sink(ABC):
    """Takes pieces in order. A sink that is not finished leaves what it wrote to its caller.

    Args:
        path: The target.
        content: What will be read.
        options: How to write.

    Raises:
        ValueError: The format has no type for a field.
    """

    _writer: Any

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        del options
        self._path, self._source = path, content.path
        self._fields = content.fields or {}

    def read(self, content: Content, rows: range) -> Piece:
        """Read a piece in the form that `add` takes."""
        return content.read(rows)

    @abstractmethod
    def add(self, rows: range, piece: Piece) -> None:
        """Append records or rows."""

    def finish(self) -> None:
        """Finish the target."""
        self._writer.close()

    def abandon(self) -> None:
        """Stop writing, and let go of the target."""
        self._writer.abandon()


class Stream(Sink):
    """A sink whose file is what `encode` returns for each piece, one after another.

    Attributes:
        has_records: Whether the file has records, which no fields are looked for in.
        rounded: The fields that had numbers with more digits than the format has.
    """

    has_records = False

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        super().__init__(path, content, options)
        self.rounded: set[str] = set()

    @cached_property
    def _file(self) -> FileIO:
        return self._path.open("xb", buffering=0)

    @property
    def spec(self) -> dict[str, str] | None:
        """The fields as which the check reads the file; None for those that it seems to have."""
        return None

    def expected(self, piece: Piece) -> Piece:
        """Return what reading the finished file must give for a piece."""
        return piece

    @abstractmethod
    def encode(self, rows: range, piece: Piece) -> bytes:
        """Return the bytes of a piece in the file."""

    def end(self) -> bytes:
        """Return the bytes after the last piece."""
        return b""

    def add(self, rows: range, piece: Piece) -> None:
        """Append records or rows."""
        self._write(self.encode(rows, piece))

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        with writing(self._path):
            while rest:
                rest = rest[self._file.write(rest) :]

    def finish(self) -> None:
        """Finish the file."""
        self._write(self.end())
        with writing(self._path):
            os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Close the file."""
        if "_file" in vars(self):
            self._file.close()


def refuse(field: Field, title: str, what: str) -> NoReturn:
    """Refuse a field that a format has no type for."""
    message = (
        f"field {field.name!r} is {field.type}: {title} {what}; name the fields to convert with "
        "names=, or convert to .ingot, which holds every type"
    )
    raise ValueError(message)
