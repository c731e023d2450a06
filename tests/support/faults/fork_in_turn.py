"""Read many files, fork, read in the child, fork there, and so on, with few descriptors.

Run as `fork_in_turn.py FOLDER GENERATIONS`. The last child prints how many rows it has read.
"""

import os
import resource
import sys

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

import ingot  # noqa: E402

folder, generations = sys.argv[1:]
reader = ingot.open(f"{folder}/*.bag")
for _ in range(int(generations)):
    rows = range(0, len(reader), 3)
    assert reader[rows] == [b"%06d" % row * 20 for row in rows]
    child = os.fork()
    if child:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.stdout.write(f"{len(reader)} rows")
