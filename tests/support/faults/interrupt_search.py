"""Be interrupted while the last commit is searched for in a file of very many holes."""

import os
import signal
import sys

import ingot

path, work = sys.argv[1:]
writer = ingot.Writer(path, sync=False)
writer.append(b"x")
writer.flush()
writer.abandon()
committed = os.path.getsize(path)  # noqa: PTH202
size = 64 << 30
os.truncate(path, size)
with open(path, "r+b") as file:  # noqa: PTH123
    for place in range(4 << 20, size, size >> 15):  # More than are looked at one by one.
        os.pwrite(file.fileno(), b"x", place)

calls = {
    "open": lambda: ingot.open(path),
    "partial": lambda: ingot.open(path, partial=True),
    "recover": lambda: ingot.recover(path),
    "append": lambda: ingot.Writer(path, append=True),
}
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    calls[work]()
except KeyboardInterrupt:
    interrupted = True
else:
    interrupted = False
assert interrupted
assert os.path.getsize(path) == size  # noqa: PTH202
os.truncate(path, committed)
assert ingot.recover(path).rows == 1
sys.stdout.write("ok")
