"""Fork while threads flush; a child asks its writers and ends, and none waits for a thread.

Run as `fork_while_flushing.py FOLDER`.
"""

import contextlib
import os
import sys
import threading
from pathlib import Path

import ingot

folder = Path(sys.argv[1])
writers = [ingot.Writer(folder / f"{k}.ingot") for k in range(2)]
done = threading.Event()


def keep_flushing(writer):
    while not done.is_set():
        writer.append(bytes(100_000))
        writer.flush()


threads = [threading.Thread(target=keep_flushing, args=(writer,)) for writer in writers]
for thread in threads:
    thread.start()
for _ in range(30):
    child = os.fork()
    if child == 0:
        for writer in writers:
            for ask in (lambda one: one.closed, len, lambda one: one.append(b"x")):
                with contextlib.suppress(ValueError):
                    ask(writer)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
done.set()
for thread in threads:
    thread.join()
for writer in writers:
    count = len(writer)
    writer.close()
    assert len(ingot.open(writer.path)) == count
sys.stdout.write("ok")
