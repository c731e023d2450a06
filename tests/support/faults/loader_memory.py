"""Take batches from a loader with eight workers, and tell how much memory the process holds.

Run as `loader_memory.py DATA KIND COUNT...`; prints the resident kilobytes after each COUNT of
steps. KIND is "columns" or "map".
"""

import gc
import json
import sys
from pathlib import Path

import ingot


def brighten(row, rng):
    return {**row, "image": row["image"] + rng.integers(0, 9, dtype="uint8")}


def resident_kb():
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def main(data, kind, counts):
    order = ingot.open(data).shuffle(seed=1)
    order = (order.map(brighten) if kind == "map" else order).repeat()
    found = []
    with ingot.Loader(order, batch_size=32, workers=8) as loader:
        for batch in loader:
            del batch
            if loader.step == counts[len(found)]:
                found.append(resident_kb())
                if len(found) == len(counts):
                    break
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [*map(int, sys.argv[3:])])
