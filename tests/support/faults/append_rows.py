"""Append rows to a data set that others append to, too; tell how many are committed."""

import os
import sys
import time

import ingot

path, writer_id = sys.argv[1], int(sys.argv[2])
spec = {"writer": "int", "k": "int", "pad": "bytes"}
writer = ingot.DatasetWriter(path, spec, append=True, shard_rows=7, sync=False)
for k in range(10**9):
    writer.append({"writer": writer_id, "k": k, "pad": b"x" * (k % 50)})
    if (k * 7 + writer_id) % 11 == 10:
        writer.flush()
        os.write(1, b"%d\n" % (k + 1))
        time.sleep(0.01)
