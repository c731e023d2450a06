"""Cut a file of numbers and text at every byte, or flip its bytes, and read what is left.

The name of each damage is written to standard error first, so that the last one is what a
crash of the process comes from. At the end, how often what came out is told.
"""

import collections
import struct
import sys
from pathlib import Path

import h5py
import numpy as np

import ingot

NUMBERS, TEXTS, RUNS = [7, 8, 9], ["one", "", "three three"], [[1, 2, 3], [4], []]
EXPECTED = list(zip(NUMBERS, TEXTS, RUNS, strict=True))
END = 40
"""Where a file of the first version says where it ends."""


def write(path):
    with h5py.File(path, "w", libver="earliest") as file:
        file["number"] = np.array(NUMBERS)
        file["text"] = TEXTS
        runs = file.create_dataset("run", (3,), h5py.vlen_dtype(np.dtype("i4")))
        for k, run in enumerate(RUNS):
            runs[k] = np.array(run, "i4")
        return [file[name].id.get_offset() for name in ("text", "run")]


def read(path):
    """Return the rows one by one, having read them together, too."""
    with ingot.open(path) as ds:
        batch, column = ds[[2, 0, 1]], ds.column("number").tolist()
        rows = [(int(row["number"]), row["text"], row["run"].tolist()) for row in ds]
        assert batch["text"] == [rows[k][1] for k in (2, 0, 1)]
        assert [one.tolist() for one in batch["run"]] == [rows[k][2] for k in (2, 0, 1)]
        assert batch["number"].tolist() == [column[k] for k in (2, 0, 1)]
        assert [number for number, _, _ in rows] == column
        ds.verify()
        return rows


def outcome(path):
    try:
        rows = read(path)
    except ingot.IngotError as error:
        return "error" if str(path) in str(error) else f"{error!r} without a path"
    return "right" if rows == EXPECTED else "other"


def cuts(data):
    """Yield a file cut at every byte, in which its end is where it says, or is not."""
    for length in range(len(data)):
        told = data[:END] + struct.pack("<Q", length) + data[END + 8 : length]
        if length > END + 8:
            yield f"cut at {length}, and it says so", told
        if length <= END + 8 or length % 16 == 0:
            yield f"cut at {length}", data[:length]


def flips(data, references):
    """Yield a file with flipped bytes of references, of heaps, and some of their free space."""
    heap = data.index(b"GCOL")
    used = heap + 160  # Five objects, and where the free space begins.
    free = range(used, heap + 4096, 16)
    taken = [k for start in references for k in range(start, start + 16 * len(EXPECTED))]
    for place in [*taken, *range(heap, used), *free]:
        for bits in (0xFF,) if place in free else (1, 0x80, 0xFF):
            flipped = bytearray(data)
            flipped[place] ^= bits
            yield f"byte {place} ^ {bits}", bytes(flipped)


def main(path, kind):
    references = write(path)
    data = path.read_bytes()
    assert read(path) == EXPECTED
    seen = collections.Counter()
    for name, damaged in cuts(data) if kind == "cut" else flips(data, references):
        sys.stderr.write(f"{name}\n")
        path.write_bytes(damaged)
        seen[outcome(path)] += 1
    sys.stdout.write(" ".join(f"{name}={count}" for name, count in sorted(seen.items())))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
