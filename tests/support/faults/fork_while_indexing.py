"""Forks while a thread builds an index, and tells whether the child has the lock of the folder."""

import fcntl
import os
import sys
import threading
from pathlib import Path

import ingot

FOLDER, CACHE = map(Path, sys.argv[1:])


def is_held(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def fork_while_indexing(path: Path) -> bool:
    """Return whether the child was made while the lock was held."""
    opener = threading.Thread(target=ingot.open, args=(path,))
    opener.start()
    while opener.is_alive() and not any(map(is_held, CACHE.rglob("lock"))):
        pass
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    (lock,) = CACHE.rglob("lock")
    was_held = opener.is_alive() and is_held(lock)
    opener.join()
    if was_held:
        sys.stdout.write("forked held" if is_held(lock) else "forked free")
    os.close(writing)
    os.wait()
    return was_held


rows = 50_000
for number in range(8):
    rows *= 2
    path = FOLDER / f"{number}.jsonl"
    path.write_bytes(b"".join(b'{"n": %d, "t": "text"}\n' % k for k in range(rows)))
    if fork_while_indexing(path):
        break
    path.unlink()
