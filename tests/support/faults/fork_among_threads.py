"""Read one reader in 16 threads that fork meanwhile; the children read too.

Run as `fork_among_threads.py PATH ROUNDS`. Prints how many children failed.
"""

import os
import random
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import ingot

path, rounds = sys.argv[1:]
reader = ingot.open(path)


def read(seed):
    """Read a batch and compare it."""
    indices = random.Random(seed).choices(range(len(reader)), k=64)
    assert [int(record[:8]) for record in reader[indices]] == indices


def fork_and_read(seed):
    """Read in a child and here. Return whether the child failed."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            for k in range(5):
                read(seed + k)
        except BaseException as error:  # noqa: BLE001
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    read(seed)
    return os.waitpid(child, 0)[1] != 0


def work(thread):
    """Read and fork in turn. Return how many children failed."""
    failed = 0
    for k in range(int(rounds)):
        for step in range(20):
            read(1000 * thread + 20 * k + step)
        ingot.set_threads(1 + (thread + k) % 5)
        failed += fork_and_read(1000 * thread + k)
    return failed


with ThreadPoolExecutor(16) as threads:
    sys.stdout.write(f"{sum(threads.map(work, range(16)))} failed")
