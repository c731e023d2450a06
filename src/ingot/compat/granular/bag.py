"""`granular.bag`: files of records."""

import atexit
import copy
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import shared_memory
from typing import Any, ClassVar, Self, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ingot.compat.granular.rows import rows_of
from ingot.compat.handle import Reopening
from ingot.formats import granular
from ingot.formats.granular import AnyPath, Closing

__all__ = ["BagReader", "BagWriter", "BufferView", "SharedBuffer"]

Indices: TypeAlias = Sequence[SupportsIndex] | npt.NDArray[np.integer[Any]]


class BagWriter(granular.BagWriter):
    """Writes a bag that Granular itself can read; see `ingot.formats.granular.BagWriter`.

    Args:
        bag_path: The file of records.
        idx_path: The file of limits of version 3; None for `bag_path` with the suffix `.idx`.
            A number is taken as `version`, which has this position in Granular 0.21.
        version: 3, 2 or 1.
        filepath: `bag_path`, as it is called in Granular 0.21.
    """

    def __init__(
        self,
        bag_path: AnyPath | None = None,
        idx_path: AnyPath | int | None = None,
        *,
        version: int | None = None,
        filepath: AnyPath | None = None,
    ) -> None:
        path: Any = bag_path if filepath is None else filepath
        if isinstance(idx_path, int):
            idx_path, version = None, idx_path
        super().__init__(path, idx_path, version=3 if version is None else version)

    @property
    def length(self) -> int:
        """The number of records."""
        return len(self)

    def append(self, record: object, flush: bool = True) -> int:
        """Append a record, and with `flush` write all so far to the files; return its number."""
        return super().append(record, flush=flush)


class BagReader(Closing, Reopening):
    """Reads a bag of any version of Granular: a sequence of bytes.

    `reader[i]` is one record; a slice, a range or a list of numbers returns a list of records
    in one native read. Several threads and forked processes may use it at the same time.
    Pickling stores the files, and all attributes of a subclass.

    Args:
        bag_source: The file of records, or bytes, or a `SharedBuffer`.
        idx_source: The limits; by default the file with the suffix `.idx` if there is one, else
            they are at the end of `bag_source`. Booleans are ignored: Granular 0.21 has
            `cache_index` in this position.
        cache_index: Accepted and ignored: limits stay in memory once they were used.
        cache_data: Whether to read all records now, for file systems other than the local one.
        single_file: Whether the limits are at the end, whatever other files there are.
        source: `bag_source`, as it is called in Granular 0.21.

    Raises:
        CorruptFileError: Its limits are invalid.
    """

    OPENED = ("_bag",)

    def __init__(
        self,
        bag_source: Any = None,
        idx_source: Any = None,
        cache_index: bool = True,
        cache_data: bool = False,
        single_file: bool = False,
        *,
        source: Any = None,
    ) -> None:
        del cache_index
        self._source = bag_source if source is None else source
        self._limits = None if isinstance(idx_source, bool) else idx_source
        self._single, self._cached = single_file, cache_data
        self._open()

    def _open(self) -> None:
        self.closed = False
        self._bag = granular.open_bag(
            self._source, self._limits, single_file=self._single, cached=self._cached
        )

    @property
    def size(self) -> int:
        """Bytes of records and limits."""
        return self._bag.nbytes

    @property
    def length(self) -> int:
        """The number of records."""
        return len(self)

    def __len__(self) -> int:
        return len(self._bag)

    @overload
    def __getitem__(self, index: SupportsIndex) -> bytes: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, index: slice | range | Indices) -> list[bytes]: ...
    def __getitem__(self, index: SupportsIndex | slice | range | Indices) -> bytes | list[bytes]:
        """Return a record, or a list of records.

        Raises:
            IndexError: There is no such record.
        """
        self._check_open()
        rows = rows_of(index, len(self))
        if isinstance(rows, int):
            return self._bag[rows]
        return self._bag[rows] if len(rows) else []

    def __iter__(self) -> Iterator[bytes]:
        return (self[row] for row in range(len(self)))

    def copy(self) -> Self:
        """Return another reader of the same bag."""
        return copy.copy(self)

    def _close(self) -> None:
        self._bag.close()


class SharedBuffer:
    """A copy of bytes in shared memory; pickling stores only its name.

    The process that made it removes it, with `close` or at exit.

    Attributes:
        ENABLE: Whether memory is shared at all; if not, pickling stores the bytes.
    """

    ENABLE: ClassVar[bool] = True

    def __init__(self, content: bytes | bytearray | memoryview) -> None:
        self.size = len(content)
        self._bytes: bytes | None = bytes(content)
        self._shared: shared_memory.SharedMemory | None = None
        if self.ENABLE and self.size:
            self._shared = shared_memory.SharedMemory(create=True, size=self.size)
            self.buf[:] = self._bytes
            self._bytes = b""
            self._maker = os.getpid()
            atexit.register(self.close)

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._bytes is None

    @property
    def buf(self) -> memoryview:
        """The bytes."""
        if self._bytes is None:
            message = "the buffer is closed"
            raise ValueError(message)
        whole = None if self._shared is None else self._shared.buf
        return memoryview(self._bytes if whole is None else whole)[: self.size]

    def __getitem__(self, index: Any) -> Any:
        return self.buf[index]

    def __getstate__(self) -> dict[str, Any]:
        name = None if self._shared is None else self._shared.name
        return {"size": self.size, "name": name, "content": self._bytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.size = state["size"]
        self._bytes = state["content"]
        self._maker = 0
        name = state["name"]
        self._shared = None if name is None else shared_memory.SharedMemory(name=name)

    def open(self, mode: str = "rb", offset: int = 0, buffering: int = -1) -> "BufferView":
        """Return the bytes as a readable file."""
        del buffering
        if mode != "rb":
            message = f"a buffer can only be opened for reading, got mode {mode!r}"
            raise ValueError(message)
        return BufferView(self.buf, self.size, offset)

    def close(self) -> None:
        """Release the memory. A second call does nothing."""
        if self._bytes is None:
            return
        self._bytes = None
        shared, self._shared = self._shared, None
        if shared is not None:
            with suppress(BufferError):  # The memory is released with the last use of the bytes.
                shared.close()
            if self._maker == os.getpid():
                atexit.unregister(self.close)
                shared.unlink()


class BufferView(io.IOBase):
    """Bytes as a readable file. Offsets count from `offset`."""

    def __init__(self, buf: memoryview | bytes, size: int, offset: int = 0) -> None:
        super().__init__()
        self._buf: memoryview | bytes = buf
        self.size = size
        self.offset = offset
        self.pos = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to another position; return it."""
        base = {0: -self.offset, 1: self.pos, 2: self.size}[whence]
        self.pos = max(0, base + offset)
        return self.tell()

    def read(self, n: int = -1) -> bytes:
        """Return the next `n` bytes; all of them if `n` is negative."""
        end = self.size if n < 0 else min(self.size, self.pos + n)
        found = bytes(self._buf[self.pos : end])
        self.pos += len(found)
        return found

    def tell(self) -> int:
        """Return the position."""
        return self.pos + self.offset

    def close(self) -> None:
        """Release the bytes."""
        self._buf = b""
        super().close()
