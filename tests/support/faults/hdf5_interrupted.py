"""Write HDF5 files, and have a signal interrupt each at a random moment.

Run as `hdf5_interrupted.py FOLDER ROUNDS`. Prints how many were interrupted; HDF5 must not crash,
neither then nor when Python ends.
"""

import random
import signal
import sys
import time
from pathlib import Path

import ingot
from ingot.compat.h5record import H5Dataset, Integer, Sequence, String

folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
SCHEMA = [Integer("i"), String("t"), Sequence("s")]
ROWS = [{"i": k, "t": f"text {k}" * 50, "s": list(range(100))} for k in range(40)]


def write(path):
    H5Dataset(SCHEMA, path, ROWS, chunk_size=2).close()


signal.signal(signal.SIGALRM, signal.default_int_handler)
write(folder / "first.h5")
began = time.perf_counter()
write(folder / "whole.h5")
seconds = time.perf_counter() - began
rng = random.Random(0)
interrupted = 0
for k in range(rounds):
    path = folder / f"{k}.h5"
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0, seconds) + 1e-6)
    try:
        write(path)
    except KeyboardInterrupt:
        interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
write(folder / "after.h5")
assert len(ingot.open(folder / "after.h5")) == len(ROWS)
sys.stdout.write(f"{interrupted}")
