"""The journal of `ingot.build`: a file with one line for each finished chunk of inputs."""

import json
import os
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ingot.dataset import atomic
from ingot.dataset.manifest import Shard, listed, shards_of
from ingot.errors import FormatError

NAME = "build.journal"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A finished chunk of inputs.

    Attributes:
        number: The number of the chunk.
        inputs: The number of inputs in it.
        digest: A digest that identifies them.
        shards: The files with their rows, in order.
    """

    number: int
    inputs: int
    digest: str
    shards: tuple[Shard, ...]


def check_not_built(folder: Path) -> None:
    """Refuse a directory in which a data set is being built.

    Raises:
        BlockingIOError: A process is building one.
        FormatError: Its journal is not a file.
    """
    if not (folder / NAME).exists():
        return
    atomic.load(folder / NAME)
    if atomic.is_held(folder / NAME):
        message = f"{folder}: another process is building this data set"
        raise BlockingIOError(message)


class Journal:
    """The journal of a directory, locked for one process.

    A line is the CRC-32 of a JSON text in eight hexadecimal digits, a space, and the text. The
    first line is the key of the build, each other line a chunk. Anything after the last good
    line was truncated by a crash and does not count.

    Raises:
        BlockingIOError: Another process is building this data set.
        FormatError: The journal is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        with atomic.locked(folder):
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            self._handle = atomic.open_own(self._path, flags)
            if not atomic.try_lock(self._handle):
                self.close()
                message = f"{folder}: another process is building this data set"
                raise BlockingIOError(message)
        try:
            data = atomic.load(self._path)
            self.begun, self.chunks, self._nbytes = _parsed(self._path, data)
        except BaseException:
            self.close()
            raise

    def begin(self, what: dict[str, Any], *, sync: bool) -> None:
        """Empty the journal, and write the key of the build."""
        os.ftruncate(self._handle, 0)
        self._nbytes, self.chunks, self.begun = 0, {}, what
        self._add(what, sync=sync)
        if sync:
            atomic.sync_folder(self._path.parent)

    def add(self, chunk: Chunk, *, sync: bool) -> None:
        """Record a finished chunk."""
        shards = [shard.content() for shard in chunk.shards]
        self._add({**asdict(chunk), "shards": shards}, sync=sync)
        self.chunks[chunk.number] = chunk

    def _add(self, content: dict[str, Any], *, sync: bool) -> None:
        text = json.dumps(content, separators=(",", ":")).encode()
        line = b"%08x %b\n" % (zlib.crc32(text), text)
        with atomic.writing(self._path):
            os.ftruncate(self._handle, self._nbytes)
            atomic.append(self._handle, self._path, line, self._nbytes)
            if sync:
                os.fsync(self._handle)
        self._nbytes += len(line)

    def remove(self) -> None:
        """Remove the file: its chunks are committed, or no longer wanted."""
        with atomic.locked(self._path.parent):
            self._path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Release the journal. A second call does nothing."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            atomic.close_own(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shards_in(folder: Path) -> list[Shard]:
    """Return the files that the journal of a directory lists, if there is one.

    Raises:
        FormatError: It is damaged.
    """
    try:
        data = atomic.load(folder / NAME)
    except FileNotFoundError:
        return []
    _, chunks, _ = _parsed(folder / NAME, data)
    return [shard for chunk in chunks.values() for shard in chunk.shards]


def _parsed(path: Path, data: bytes) -> tuple[dict[str, Any] | None, dict[int, Chunk], int]:
    """Return the key, the finished chunks, and where the good lines end."""
    begun: dict[str, Any] | None = None
    chunks: dict[int, Chunk] = {}
    end = 0
    for line in data.splitlines(keepends=True):
        text = line[9:-1]
        if not line.endswith(b"\n") or line[:9] != b"%08x " % zlib.crc32(text):
            break
        with atomic.parsing(path, "the journal of a build"):
            if begun is None:
                begun = atomic.object_of(text)
            else:
                chunk = _chunk(text)
                chunks[chunk.number] = chunk
        end += len(line)
    names = [shard.name for chunk in chunks.values() for shard in chunk.shards]
    if len(set(names)) < len(names):
        message = f"{path}: this is not the journal of a build: it lists a file twice"
        raise FormatError(message, str(path))
    return begun, chunks, end


def _chunk(text: bytes) -> Chunk:
    listing, content = listed(text)
    chunk = Chunk(**content, shards=shards_of(listing))
    for number in (chunk.number, chunk.inputs):
        if type(number) is not int or number < 0:
            message = f"expected numbers for a chunk and its inputs, got {number!r:.40}"
            raise TypeError(message)
    return chunk
