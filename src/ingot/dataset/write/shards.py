"""The files that one writer of a directory makes, one after another."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from ingot._core import Writer as NativeWriter
from ingot.dataset.manifest import Shard
from ingot.dataset.spec import Spec
from ingot.dataset.write.packed import Cells, PackedRows

Compression: TypeAlias = Literal["auto", "zstd", "lz4"] | None

DEFAULT_BYTES = 10**9
_COMPRESSIONS = ("auto", "zstd", "lz4", None)
_LEVELS = range(1, 23)
_LIMIT = 2**63
_PREFIXES = ["", "K", "M", "G", "T"]
_SIZE = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)\s*([kKMGT]?)(i?)B?")


@dataclass(slots=True)
class Encodings:
    """How the fields of a data set are compressed, as its first file decided.

    Attributes:
        known: The codec and the dictionary of each field, how often its values were tried, and
            how many bytes of them; None for a field without values.
    """

    known: list[tuple[int, bytes, int, int] | None] | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How files are written.

    Attributes:
        compression: As for `ingot.Writer`.
        level: Level of zstd.
        sync: Whether to wait until the bytes are on the storage device.
        shard_bytes: The size of each file in a directory, before compression.
        shard_rows: The number of rows in each file.
    """

    compression: Compression = "auto"
    level: int = 3
    sync: bool = True
    shard_bytes: int | None = None
    shard_rows: int | None = None

    def __post_init__(self) -> None:
        """Refuse invalid options, by a ValueError."""
        if self.compression not in _COMPRESSIONS:
            listed = ", ".join(map(repr, _COMPRESSIONS))
            raise ValueError(f"compression is one of {listed}, not {self.compression!r:.50}")
        if type(self.level) is not int or self.level not in _LEVELS:
            raise ValueError(f"level is 1 to {_LEVELS[-1]}, not {self.level!r:.50}")

    def open(
        self, path: Path, mode: str, metadata: str, spec: Spec, encodings: Encodings | None = None
    ) -> NativeWriter:
        """Open a file for rows with these fields; modes are those of the native writer."""
        native = (self.compression, self.level, self.sync)
        known = None if encodings is None else encodings.known
        return NativeWriter(str(path), mode, metadata, *native, spec.stored(), known)


def limits(shard_bytes: int | str | None, shard_rows: int | None) -> tuple[int | None, int | None]:
    """Return the maximum bytes and rows of a file.

    Raises:
        TypeError: They are neither numbers nor text such as "1GB".
        ValueError: They are too small or too large.
    """
    if shard_bytes is None and shard_rows is None:
        return DEFAULT_BYTES, None
    return _limit("shard_bytes", _bytes_of(shard_bytes)), _limit("shard_rows", shard_rows)


def _limit(name: str, limit: Any) -> int | None:
    if limit is None:
        return None
    if type(limit) is not int:
        raise TypeError(f"{name} must be a number, got {limit!r}")
    if not 1 <= limit < _LIMIT:
        raise ValueError(f"{name} must be at least 1 and below 2^63, got {limit!r:.30}")
    return limit


def _bytes_of(size: Any) -> Any:
    if not isinstance(size, str):
        return size
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        raise ValueError(f"{size!r:.50} is not a size; pass 1GB, 256MB or a number of bytes")
    return round(
        Decimal(found[1]) * (1024 if found[3] else 1000) ** _PREFIXES.index(found[2].upper())
    )


def names_of(token: str, *numbers: int) -> Iterator[str]:
    """Yield names of shards: numbers, the last one counting up, and the token of a writer."""
    *first, last = numbers
    front = "".join(f"{number:05}-" for number in first)
    # An interrupt ends a generator, but not this.
    return map(lambda number: f"{front}{number:06}-{token}.ingot", itertools.count(last))  # noqa: C417


class ShardWriter:
    """Writes rows to files of a directory; closes each file when it is full.

    The caller must list the files in a manifest. The first file decides how the fields are
    compressed; the others do the same.

    Attributes:
        finished: The closed files.
    """

    def __init__(
        self,
        folder: Path,
        names: Iterator[str],
        spec: Spec,
        metadata: str,
        options: Options,
        *,
        encodings: Encodings | None = None,
    ) -> None:
        """Set the directory and the names of the files.

        Args:
            folder: The directory.
            names: The names.
            spec: The fields.
            metadata: The metadata from the user, as JSON.
            options: How to write the files.
            encodings: What earlier writers of the data set decided; updated with each file.
        """
        self._folder = folder
        self._names = names
        self._spec = spec
        self._metadata = metadata
        self._options = options
        self._encodings = Encodings() if encodings is None else encodings
        self._writer: NativeWriter | None = None
        self._name = ""
        self._closed = (0, 0)
        self.finished: list[Shard] = []

    @property
    def num_rows(self) -> int:
        """The number of rows in all files."""
        return self._closed[0] + (0 if self._writer is None else len(self._writer))

    @property
    def nbytes(self) -> int:
        """The size of the rows in all files, before compression."""
        return self._closed[1] + (0 if self._writer is None else self._writer.nbytes)

    def append(self, stored: Sequence[Cells]) -> None:
        """Append an encoded row."""
        writer = self._start() if self._writer is None else self._writer
        writer.append_row(stored)
        self._finish_if_full(writer)

    def extend(self, rows: PackedRows) -> None:
        """Append rows as they are stored."""
        options, ends = self._options, np.cumsum(rows.sizes())
        start = 0
        while start < rows.count:
            writer = self._start() if self._writer is None else self._writer
            stop = rows.count
            if options.shard_rows is not None:
                stop = min(stop, start + options.shard_rows - len(writer))
            if options.shard_bytes is not None:
                room = options.shard_bytes - writer.nbytes + (int(ends[start - 1]) if start else 0)
                stop = min(stop, int(np.searchsorted(ends, room)) + 1)
            part = rows if stop - start == rows.count else rows.cut(start, stop)
            writer.extend_packed(part.fields, part.count)
            start = stop
            self._finish_if_full(writer)

    def _finish_if_full(self, writer: NativeWriter) -> None:
        options = self._options
        if (options.shard_rows is not None and len(writer) >= options.shard_rows) or (
            options.shard_bytes is not None and writer.nbytes >= options.shard_bytes
        ):
            self.finish()

    def _start(self) -> NativeWriter:
        self._name = next(self._names)
        path = self._folder / self._name
        self._writer = self._options.open(
            path, "create", self._metadata, self._spec, self._encodings
        )
        return self._writer

    def finish(self, *, at_least_one: bool = False) -> None:
        """Close the open file; with `at_least_one`, make an empty file if no file was made.

        If this raises, the file stays open, and another call continues.
        """
        if self._writer is None and at_least_one and not self.finished:
            self._start()
        if self._writer is None:
            return
        writer = self._writer
        writer.close()
        self._encodings.known = writer.encodings()
        nbytes = (self._folder / self._name).stat().st_size
        finished = [*self.finished, Shard(self._name, len(writer), nbytes, writer.id)]
        closed = (self.num_rows, self.nbytes)
        # An interrupt comes before or after this line.
        self._writer, self.finished, self._closed = None, finished, closed

    def drop(self) -> list[str]:
        """Give up the open file, if there is one; return its name."""
        if self._writer is None:
            return []
        self._writer.abandon()
        self._writer = None
        return [self._name]

    def abandon(self) -> list[str]:
        """Give up all files; return their names."""
        names = [shard.name for shard in self.finished] + self.drop()
        self.finished = []
        return names
