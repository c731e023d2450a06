"""Read batches in several processes at once and print how many helper threads each has.

Run as `read_at_once.py PATH PROCESSES [THREADS...]`, with 256 records of 4 KB or more at PATH. Each
process sets THREADS in turn and reads batches after each; without them it leaves the default.
"""

import multiprocessing
import sys
from pathlib import Path

import ingot


def count_helpers():
    """Return how many threads of this process are helpers."""
    names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    return sum(name.strip().removeprefix("ingot-").isdigit() for name in names)


def read(path, threads, together, counts):
    """Read batches after each setting; put the numbers of helpers into `counts`."""
    reader = ingot.open(path)
    found = []
    together.wait()
    for setting in threads or [None]:
        if setting is not None:
            ingot.set_threads(setting)
        for start in range(100):
            indices = [(start + 7 * k) % len(reader) for k in range(256)]
            records = reader[indices]
            assert [int(record[:8]) for record in records] == indices
        found.append(count_helpers())
    counts.put(found)


if __name__ == "__main__":
    path, processes, *threads = sys.argv[1:]
    context = multiprocessing.get_context("fork")
    together, counts = context.Barrier(int(processes)), context.Queue()
    arguments = (path, list(map(int, threads)), together, counts)
    children = [context.Process(target=read, args=arguments) for _ in range(int(processes))]
    for child in children:
        child.start()
    for _ in children:
        print(*counts.get(timeout=100))  # noqa: T201
    for child in children:
        child.join()
        assert child.exitcode == 0
