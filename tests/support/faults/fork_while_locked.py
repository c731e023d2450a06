"""Fork while a thread holds a lock of a data set; the child lives on, and nobody waits for it.

Run as `fork_while_locked.py FOLDER HOW`. The lock is that of a commit (`commit`), or the one that
is taken for a moment to find out whether a writer lives (`probe`).
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import ingot
from ingot.dataset import atomic

FOLDER, HOW = Path(sys.argv[1]) / "x", sys.argv[2]
SPEC = {"a": "int"}
APPEND = (
    "import ingot, sys\n"
    "with ingot.DatasetWriter(sys.argv[1], append=True) as writer:\n"
    "    writer.append({'a': 3})\n"
)


def forked_while(name, module, call):
    """Fork while a thread is inside of a function of a module; return the child."""
    reached, released, original = Event(), Event(), getattr(module, name)

    def held(*arguments):
        found = original(*arguments)
        reached.set()
        released.wait()
        return found

    thread = Thread(target=call)
    setattr(module, name, held)
    thread.start()
    reached.wait()
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    setattr(module, name, original)
    released.set()
    thread.join()
    return child


writer = ingot.DatasetWriter(FOLDER, SPEC)
writer.append({"a": 1})
mark = FOLDER / ".writer-0123456789abcdef"
if HOW == "commit":
    child = forked_while("fsync", os, writer.flush)
else:
    writer.flush()
    mark.touch()
    child = forked_while("try_lock", atomic, lambda: atomic.is_held(mark))
try:
    signal.alarm(100)
    assert not mark.exists() or not atomic.is_held(mark)
    writer.append({"a": 2})
    writer.close()
    subprocess.run([sys.executable, "-c", APPEND, str(FOLDER)], check=True, timeout=100)
    assert ingot.open(FOLDER).column("a").tolist() == [1, 2, 3]
    assert not mark.exists()
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
finally:
    os.kill(child, signal.SIGKILL)
