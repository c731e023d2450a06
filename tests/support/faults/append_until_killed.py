"""Append numbered records for ever, and tell how many are committed after each flush."""

import os
import sys

import ingot

path, seed, sync = sys.argv[1:]
writer = ingot.Writer(path, append=True, sync=sync == "sync")
os.write(1, b"%d\n" % len(writer))
while True:
    for _ in range(1 + (len(writer) * int(seed)) % 97):
        k = len(writer)
        writer.append(b"%d:" % k + b"x" * (k * 37 % 3000))
    writer.flush()
    os.write(1, b"%d\n" % writer.num_committed)
