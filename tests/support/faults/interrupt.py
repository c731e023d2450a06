"""Be interrupted in the middle of long work that is all native, then go on reading."""

import itertools
import os
import signal
import sys
import threading
from collections import deque

import ingot

# What was started in the background ignores interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
path, work = sys.argv[1:]
with ingot.Writer(path, compression=None, sync=False) as writer:
    for _ in range(100):
        writer.extend([b"x"] * 40_000)
reader = ingot.open(path)
pages = reader.stats().pages
told = {}
begun = threading.Event()


def interrupt():
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)


thread = threading.Thread(target=interrupt)
thread.start()
try:
    begun.set()
    if work == "verify":
        reader.verify(progress=told.__setitem__)
    else:
        deque(reader.iter(itertools.cycle(range(1000))), maxlen=0)
except KeyboardInterrupt:
    interrupted = True
else:
    interrupted = False
thread.join()
assert interrupted
assert len(told) < pages
assert reader[[5, 3_999_999]] == [b"x", b"x"]
assert reader.verify().ok
sys.stdout.write("ok")
