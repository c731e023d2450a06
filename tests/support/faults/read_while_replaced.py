"""Read a data set of many files with few descriptors while others compact or replace it.

Run as `read_while_replaced.py FOLDER SHARDS DESCRIPTORS HOW`; HOW is `compact` or `overwrite`.
"""

import resource
import subprocess
import sys
from pathlib import Path

import ingot

FOLDER, SHARDS, DESCRIPTORS, HOW = Path(sys.argv[1]) / "x", *map(int, sys.argv[2:4]), sys.argv[4]
CHANGES = {
    "compact": "ingot.compact(sys.argv[1], sync=False)",
    "overwrite": (
        "with ingot.DatasetWriter(sys.argv[1], {'a': 'int'}, overwrite=True) as writer:\n"
        "    writer.append({'a': -1})"
    ),
}

with ingot.DatasetWriter(FOLDER, {"a": "int"}, shard_rows=2, sync=False, atomic=True) as writer:
    writer.extend({"a": k} for k in range(2 * SHARDS))
code = f"import ingot, sys\nsys.stdin.read()\n{CHANGES[HOW]}"
changer = subprocess.Popen([sys.executable, "-c", code, str(FOLDER)], stdin=subprocess.PIPE)
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, most))
ds = ingot.open(FOLDER)
order = [k * 7919 % len(ds) for k in range(len(ds))]
half = len(order) // 2
read = [ds[k]["a"] for k in order[:half]]
changer.stdin.close()
assert changer.wait() == 0
read += [ds[k]["a"] for k in order[half:]]
assert read == order
assert ds[order]["a"].tolist() == order
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
found = ingot.open(FOLDER)
assert len(found.paths) < SHARDS
assert len(found) == (len(ds) if HOW == "compact" else 1)
