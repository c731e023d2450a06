"""Read more files than stay open in four threads, fork meanwhile, and read in the children.

Run as `fork_among_files.py FOLDER FORKS` with bags of three records in the folder. Prints how
many children failed.
"""

import os
import random
import resource
import signal
import sys
import threading

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

import ingot  # noqa: E402

folder, forks = sys.argv[1:]
reader = ingot.open(f"{folder}/*.bag")
stopped = threading.Event()


def read(rng):
    """Read a batch and compare it."""
    rows = rng.choices(range(len(reader)), k=40)
    assert reader[rows] == [b"%06d" % row * 20 for row in rows]


def read_on(seed):
    """Read until all is done."""
    rng = random.Random(seed)
    while not stopped.is_set():
        read(rng)


def fork(seed):
    """Read in a child; return whether it failed."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] != 0
    signal.alarm(60)
    try:
        for _ in range(4):
            read(random.Random(seed))
    except BaseException as error:  # noqa: BLE001
        os.write(2, repr(error).encode())
        os._exit(1)
    os._exit(0)


threads = [threading.Thread(target=read_on, args=(seed,)) for seed in range(4)]
for thread in threads:
    thread.start()
failed = sum(fork(seed) for seed in range(int(forks)))
stopped.set()
for thread in threads:
    thread.join()
sys.stdout.write(f"{failed} failed")
