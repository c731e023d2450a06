"""FFRecord files: golden ones of the real package, and new ones."""

import json
import random

from ingot.compat import ffrecord
from tests.support import DATA

GOLDEN = DATA / "ffrecord"
FILES = json.loads((GOLDEN / "manifest.json").read_text())["files"]


def golden(name):
    return GOLDEN / name


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def samples(count, seed=0):
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(0, 3000)) for _ in range(count)]


def write(path, records, n=None):
    with ffrecord.FileWriter(path, n, sync=False) as writer:
        for record in records:
            writer.write_one(record)
    return path
