"""Write many megabytes and print by how many bytes the process grew."""

import random
import resource
import sys

import ingot

path, compression, megabytes = sys.argv[1:]
rng = random.Random(0)
records = [rng.randbytes(4096) for _ in range(256)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with ingot.Writer(
    path, compression=None if compression == "None" else compression, sync=False
) as writer:
    for _ in range(int(megabytes)):
        writer.extend(records)
sys.stdout.write(str((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10))
