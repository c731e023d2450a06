"""Pack a folder of argv[2] files of argv[3] bytes under argv[1], and unpack it again.

Prints by how many bytes the most memory that was in use grew over each.
"""

import resource
import sys
from pathlib import Path

import ingot

folder, count, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
(folder / "source").mkdir()
for k in range(count):
    with (folder / "source" / str(k)).open("wb") as file:
        file.truncate(size)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


before = peak()
ingot.pack(folder / "source", folder / "x.ingot", compression="zstd")
packed = peak()
with ingot.PackedFolder(folder / "x.ingot") as pack:
    pack.unpack(folder / "target")
print(packed - before, peak() - packed)  # noqa: T201
