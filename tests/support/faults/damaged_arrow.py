"""Reads a file with many kinds of damage; prints how often that was an error of Ingot.

Run as `damaged_arrow.py PATH COUNT [DATASET]`, where PATH is a file of DATASET, in a process of
its own: a crash is a failure, too.
"""

import sys
from pathlib import Path

import numpy as np

import ingot


def damaged(data, rng):
    """Return bytes with a few bits flipped."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        changed[rng.integers(0, len(data))] ^= 1 << rng.integers(0, 8)
    return changed


def main():
    """Damage the file, read it, and do so again."""
    path, count, *rest = sys.argv[1:]
    path, opened = Path(path), rest[0] if rest else path
    data, noticed = path.read_bytes(), 0
    rng = np.random.default_rng(5)
    for _ in range(int(count)):
        path.unlink()  # A mapping of the file before it stays whole.
        path.write_bytes(damaged(data, rng))
        try:
            ds = ingot.open(opened)
            ds.__getitems__(rng.integers(0, len(ds), 8) if len(ds) else [])
            list(ds)
            ds.to_arrow()
            ds.close()
        except (ingot.FormatError, ingot.StorageError):
            noticed += 1
    sys.stdout.write(str(noticed))


if __name__ == "__main__":
    main()
