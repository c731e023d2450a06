"""Bytes that several processes share, by name."""

import atexit
import io
import os
from contextlib import suppress
from multiprocessing import shared_memory
from typing import Any, ClassVar


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
