"""Append three lots of numbered records, with a flush behind each, and close the file."""

import os
import sys

import ingot

with ingot.Writer(sys.argv[1], append=True) as writer:
    for _ in range(3):
        for _ in range(4):
            k = len(writer)
            writer.append(b"%d:" % k + b"x" * (k * 37 % 3000))
        writer.flush()
        os.write(1, b"%d\n" % writer.num_committed)
os.write(1, b"closed\n")
