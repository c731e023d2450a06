"""Pipes to worker processes, and batches through them: large ones in anonymous shared memory.

The end of a worker is noticed when its end of the pipe is closed. So no other child of a fork,
of this loader or of another library, may have that end too.

A batch is a pickle and the buffers of its arrays. A large one is written to a memory file
without a name, whose descriptor goes through the pipe once. The receiver maps the file: the
arrays are that memory. When the last of them is gone, the sender writes another batch to the
file, since fresh memory costs several times as much as memory that is there. The system frees
the memory with the last process.
"""

import errno
import io
import mmap
import os
import pickle
import resource
import socket
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, TypeAlias

import numpy as np

from ingot.loader.frameworks import bytes_of, is_plain_tensor, tensor_of

Pipe: TypeAlias = "Connection[Any, Any]"

Returned: TypeAlias = Sequence[tuple[int, bool]]
"""Numbers of files that the receiver has released, and whether to use them again."""

_IN_BAND = 1 << 12
_THROUGH_PIPE = 1 << 16
_ALIGNMENT = 64
_SPARE = 16
"""Files that are kept for the next batches, at most."""

_MAPPED_MAX = 256
"""Before Python 3.13 a mapping holds a descriptor; with more of these open, or half of those that
the process may have, batches are copied."""

_HAS_FILES = hasattr(os, "memfd_create")

_forking = threading.RLock()
_ends: "weakref.WeakSet[Pipe]" = weakref.WeakSet()
_kept: list[Pipe] = []
_forks = [0]


def connected(
    context: BaseContext, start: Callable[[Pipe], BaseProcess]
) -> tuple[Pipe, BaseProcess]:
    """Return this process's end of a new pipe, and the process that has the other end.

    Args:
        context: How processes are started.
        start: Starts the process with its end.
    """
    with _forking:
        ours, theirs = context.Pipe()
        _ends.update((ours, theirs))
        _kept[:] = [theirs]
        try:
            with theirs:
                return ours, start(theirs)
        finally:
            _kept.clear()


def _lock() -> None:
    _forking.acquire()


def _unlock() -> None:
    _forks[0] += 1
    _forking.release()


def _forget() -> None:
    """Close all ends in a child, but for its own."""
    global _forking  # noqa: PLW0603 -- a thread that is not here may have the old one
    _forking = threading.RLock()
    for end in list(_ends):
        if not any(end is one for one in _kept):
            end.close()
    _ends.clear()


os.register_at_fork(before=_lock, after_in_parent=_unlock, after_in_child=_forget)


@dataclass(frozen=True, slots=True)
class _Label:
    """What is told of a batch: its parts, and the file that they are in, if there is one.

    Also the numbers of files that the receiver has given back, and that the sender has closed.
    """

    sizes: Sequence[int]
    file: int | None = None
    is_new: bool = False
    file_bytes: int = 0
    forgotten: Sequence[int] = ()


def pickled(value: Any) -> list[memoryview]:
    """Take a value apart: its pickle, and the memory of its large arrays as it is.

    Raises:
        Exception: It cannot be pickled.
    """
    stream = io.BytesIO()
    buffers: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes >= _IN_BAND:
            buffers.append(view)
            return False
        return True

    _Pickler(stream, keep).dump(value)
    return [stream.getbuffer(), *buffers]


def unpickled(parts: Sequence[memoryview]) -> Any:
    """Put a value together that `pickled` has taken apart.

    Raises:
        Exception: It cannot be unpickled.
    """
    return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 -- from a process of this one


class Sender:
    """The end of a pipe that sends values; used by one thread."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._files: dict[int, tuple[int, int]] = {}  # Descriptor and size.
        self._free: list[int] = []
        self._forgotten: list[int] = []
        self._next = 0

    def take_back(self, returned: Returned) -> None:
        """Write to these files again, or forget them."""
        for number, is_usable in returned:
            if is_usable:
                self._free.append(number)
            else:
                self._close(number)
        self._forget(self._free[:-_SPARE])

    def send(self, parts: Sequence[memoryview]) -> None:
        """Send a value, which `pickled` has taken apart.

        Raises:
            OSError: The receiver has ended.
        """
        sizes = [part.nbytes for part in parts]
        if _HAS_FILES and sum(sizes) > _THROUGH_PIPE and self._send_file(parts, sizes):
            return
        self._pipe.send(_Label(sizes, forgotten=self._told()))
        for part in parts:
            self._pipe.send_bytes(part)

    def _send_file(self, parts: Sequence[memoryview], sizes: Sequence[int]) -> bool:
        """Send a value as a file; return False if the system has no memory or file to spare."""
        *starts, end = _starts(sizes)
        try:
            number, is_new = self._file_of(end)
        except OSError:
            return False
        file, file_bytes = self._files[number]
        try:
            for part, start in zip(parts, starts, strict=True):
                _write(file, part, start)
        except OSError:
            if is_new:
                self._close(number)
            else:
                self._free.append(number)
            return False
        self._pipe.send(_Label(sizes, number, is_new, file_bytes, self._told()))
        if is_new:
            with _socket_of(self._pipe) as channel:
                socket.send_fds(channel, [b"\0"], [file])
        return True

    def _file_of(self, length: int) -> tuple[int, bool]:
        """Return a file for a batch of some length, and whether the receiver does not know it."""
        for place, number in enumerate(self._free):
            if length <= self._files[number][1] <= 4 * length:
                del self._free[place]
                return number, False
        self._forget(list(self._free))
        file = os.memfd_create("ingot-batch", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, length)
        except OSError:
            os.close(file)
            raise
        self._next += 1
        self._files[self._next] = file, length
        return self._next, True

    def _forget(self, free: Sequence[int]) -> None:
        """Close files that the receiver has given back, and tell it with the next batch."""
        for number in free:
            self._free.remove(number)
            self._forgotten.append(number)
            self._close(number)

    def _told(self) -> Sequence[int]:
        told, self._forgotten = self._forgotten, []
        return told

    def _close(self, number: int) -> None:
        os.close(self._files.pop(number)[0])


class Receiver:
    """The end of a pipe that receives values; used by one thread at a time.

    What it has received may be dropped on any thread.
    """

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._mapped: dict[int, mmap.mmap] = {}
        self._returned: deque[tuple[int, bool]] = deque()

    def give_back(self) -> Returned:
        """Return the files that no array uses, for the sender to take back."""
        given = [self._returned.popleft() for _ in range(len(self._returned))]
        for number, is_usable in given:
            if not is_usable:
                self._mapped.pop(number, None)
        return given

    def close(self) -> None:
        """Let go of all files. The memory of those that arrays are made of stays with these."""
        self._mapped.clear()

    def receive(self) -> list[memoryview]:
        """Return the parts of what was sent.

        Raises:
            EOFError: The other process has ended.
            OSError: It has ended meanwhile, or this process has too many open files.
        """
        label: _Label = self._pipe.recv()
        for number in label.forgotten:
            del self._mapped[number]
        if label.file is None:
            return [memoryview(bytearray(self._pipe.recv_bytes())) for _ in label.sizes]
        content = self._content(label, label.file)
        starts = zip(_starts(label.sizes), label.sizes, strict=False)
        return [content[start : start + size] for start, size in starts]

    def _content(self, label: _Label, number: int) -> memoryview:
        if label.is_new:
            with _socket_of(self._pipe) as channel:
                sent, files, _, _ = socket.recv_fds(channel, 1, 1)
            if not sent:
                raise EOFError
            if not files:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            try:
                found = _map(files[0], label.file_bytes)
            finally:
                os.close(files[0])
            if isinstance(found, bytearray):
                self._returned.append((number, False))
                return memoryview(found)
            self._mapped[number] = found
        lent = np.frombuffer(self._mapped[number], np.uint8)
        weakref.finalize(lent, _give_back, self._returned, number, _forks[0]).atexit = False
        return lent.data


def _give_back(returned: deque[tuple[int, bool]], number: int, forks: int) -> None:
    """Let a file be used again, unless the child of a fork may still look at it."""
    returned.append((number, forks == _forks[0]))


def _map(file: int, length: int) -> mmap.mmap | bytearray:
    if sys.version_info >= (3, 13):
        return mmap.mmap(file, length, trackfd=False)
    if _next_descriptor(file) < min(_MAPPED_MAX, _descriptors_max() // 2):
        return mmap.mmap(file, length)
    copied = bytearray(length)
    done = 0
    while done < length:
        done += os.preadv(file, [memoryview(copied)[done:]], done)
    return copied


def _next_descriptor(file: int) -> int:
    """Return the descriptor that a mapping of a file would hold."""
    try:
        found = os.dup(file)
    except OSError:  # The process has no descriptor left.
        return _MAPPED_MAX
    os.close(found)
    return found


def _descriptors_max() -> int:
    most: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else most


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, keep: Callable[[pickle.PickleBuffer], bool]) -> None:
        super().__init__(stream, protocol=5, buffer_callback=keep)

    def reducer_override(self, one: Any) -> Any:
        """Pickle tensors as arrays, whose memory need not go through the stream."""
        if not is_plain_tensor(one):
            return NotImplemented
        return tensor_of, (bytes_of(one), one.dtype, tuple(one.shape))


def _starts(sizes: Sequence[int]) -> list[int]:
    """Return where each part begins, and where the last one ends with what fills it up."""
    return list(accumulate((-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes), initial=0))


def _write(file: int, part: memoryview, start: int) -> None:
    done = 0
    while done < part.nbytes:
        done += os.pwrite(file, part[done:], start + done)


@contextmanager
def _socket_of(pipe: Pipe) -> Iterator[socket.socket]:
    channel = socket.socket(fileno=pipe.fileno())
    try:
        yield channel
    finally:
        channel.detach()
