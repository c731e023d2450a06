"""Decoded pieces of columns, kept for later reads."""

import os
from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any

_BYTES = 256 << 20
"""What all files of a process keep together."""

_NOMINAL = 1 << 10
"""What an array counts for at least: its own objects, if its values are in a mapping."""


class Cache:
    """Arrays by key, of bounded size; the one that was not used for longest goes first.

    Args:
        limit: The limit in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.reset()

    def reset(self) -> None:
        """Forget everything; in a forked child, a thread of the parent may hold the lock."""
        self._lock = Lock()
        self._arrays: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """What is kept, in bytes."""
        return self._nbytes

    def get(self, key: Hashable) -> Any:
        """Return an array, or None."""
        with self._lock:
            found = self._arrays.get(key)
            if found is None:
                return None
            self._arrays.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, array: Any, nbytes: int) -> None:
        """Keep an array that takes `nbytes` bytes, unless it is larger than the limit."""
        nbytes = max(nbytes, _NOMINAL)
        if nbytes > self._limit:
            return
        with self._lock:
            old = self._arrays.pop(key, None)
            self._nbytes += nbytes - (old[1] if old else 0)
            self._arrays[key] = (array, nbytes)
            while self._nbytes > self._limit:
                _, (_, freed) = self._arrays.popitem(last=False)
                self._nbytes -= freed

    def drop(self, token: Hashable) -> None:
        """Forget all arrays whose keys begin with `token`."""
        with self._lock:
            for key in [one for one in self._arrays if isinstance(one, tuple) and one[0] == token]:
                self._nbytes -= self._arrays.pop(key)[1]


CACHE = Cache(_BYTES)
"""The cache of this process."""

os.register_at_fork(after_in_child=CACHE.reset)
