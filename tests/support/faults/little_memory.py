"""Do something with little memory left; it works, or fails as Python does.

Run as `little_memory.py WORK PATH MEGABYTES`.
"""

import resource
import sys
from pathlib import Path

import numpy as np

import ingot

work, path, megabytes = sys.argv[1], sys.argv[2], float(sys.argv[3])
FORGOTTEN = ("without exception set", "without setting an exception")
SPEC = {"a": "int", "text": "utf8", "image": "array(uint8,64,64,3)"}


def limit():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    nbytes = pages * resource.getpagesize() + int(megabytes * (1 << 20))
    resource.setrlimit(resource.RLIMIT_AS, (nbytes, nbytes))


def rows(count):
    image = np.zeros((64, 64, 3), np.uint8)
    return ({"a": k, "text": "text " * (k % 50), "image": image} for k in range(count))


def prepare():
    if work.startswith("write"):
        return None
    if work.endswith("many"):
        with ingot.DatasetWriter(path, {"a": "int", "o": "int?"}, sync=False) as writer:
            writer.extend({"a": k, "o": k} for k in range(200_000))
    elif work.endswith("rows"):
        with ingot.DatasetWriter(path, SPEC, sync=False) as writer:
            writer.extend(rows(4000))
    else:
        with ingot.Writer(path, sync=False, compression="zstd") as writer:
            writer.extend(b"record %d " % k * (k % 400) for k in range(40_000))
    return ingot.open(path)


def run(opened):  # noqa: C901, PLR0912 -- one case for each kind of work
    numbers = range(4000)
    match work:
        case "write-records":
            with ingot.Writer(path, sync=False) as writer:
                writer.extend(bytes(1 << 20) for _ in range(200))
        case "write-rows":
            with ingot.DatasetWriter(path, SPEC, sync=False) as writer:
                writer.extend(rows(4000))
        case "lengths-records":
            opened.lengths()
        case "verify-records" | "verify-rows":
            assert opened.verify().ok
        case "write-large":
            record = bytes(int(0.6 * megabytes * (1 << 20)))
            with ingot.Writer(path, sync=False) as writer:
                writer.append(record)
        case "keep-records" | "keep-rows":
            kept = []
            while True:
                kept.append(opened[list(range(64))])
        case "batch-records":
            opened[list(range(40_000))]
        case "buffer-records":
            opened.read(list(range(40_000)))
        case "iterate-records" | "iterate-rows":
            for _ in opened:
                pass
        case "batch-rows":
            opened[numbers]
        case "column-rows":
            opened.column("text")
        case "texts-rows":
            opened[numbers, ["text"]]
        case "numbers-many":
            opened.column("a")
        case "present-many":
            opened.present("o")


opened = prepare()
# Modules are loaded before the limit: the subject is the work, not the interpreter's import.
assert ingot.DatasetWriter
limit()
failure = None
try:
    run(opened)
except (MemoryError, ingot.StorageError, SystemError) as error:
    # The frames hold what has filled the memory: nothing can be said before they are gone.
    failure = error.with_traceback(None)
if isinstance(failure, SystemError):
    # Where the interpreter itself runs out of memory, it forgets to say so.
    if not any(words in str(failure) for words in FORGOTTEN):
        raise failure
    failure = MemoryError()
sys.stdout.write("done" if failure is None else type(failure).__name__)
