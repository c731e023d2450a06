"""Writes a bag with separate limits, telling after each flush how many records it has.

Arguments: the bag, its limits, and how many records to flush at a time.
"""

import sys

from ingot.formats.bag import BagWriter

path, limits, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
with BagWriter(path, limits, mode="append") as writer:
    sys.stdout.write(f"{len(writer)}\n")
    sys.stdout.flush()
    while True:
        first = len(writer)
        writer.extend([b"%d:" % k + b"x" * (k * 37 % 3000) for k in range(first, first + step)])
        writer.flush()
        sys.stdout.write(f"{len(writer)}\n")
        sys.stdout.flush()
