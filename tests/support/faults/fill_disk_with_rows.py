"""Write and build data sets until there is no room; what was committed must stay."""

import contextlib
import errno
import random
import shutil
import sys
from pathlib import Path

import ingot

SPEC = {"b": "bytes"}
path = Path(sys.argv[1])
rng = random.Random(0)


def rows(number):
    return [{"b": rng.randbytes(1000)} for _ in range(number)]


def refused(call):
    try:
        call()
    except ingot.StorageError as error:
        if error.errno == errno.ENOSPC:
            return
    sys.exit("there was room")


def write(**options):
    with ingot.DatasetWriter(path / "x", SPEC, shard_rows=50, compression=None, **options) as w:
        w.extend(rows(2000))


def listed():
    return [entry.name for entry in (path / "x").iterdir()]


with ingot.DatasetWriter(path / "x", SPEC, shard_rows=50) as writer:
    writer.extend(rows(100))
before = list(ingot.open(path / "x"))
files = sorted(listed())
all_or_nothing = (
    {"append": True, "atomic": True},
    {"overwrite": True},
    {"append": True, "shard": (0, 1)},
)
for options in all_or_nothing:
    refused(lambda options=options: write(**options))
    assert list(ingot.open(path / "x")) == before
    assert sorted(listed()) == files


refused(lambda: write(append=True))
more = list(ingot.open(path / "x"))
assert len(more) > 500, len(more)
assert len(more) % 50 == 0
assert more[:100] == before
shutil.rmtree(path / "x")
with ingot.DatasetWriter(path / "x", SPEC) as writer:
    writer.extend(before)
files = sorted(listed())


def fn(_):
    return rows(1)[0]


def build():
    ingot.build(path / "y", fn, range(2000), spec=SPEC, workers=0, chunk=50, progress=None)


refused(build)
finished = len(list((path / "y").glob("*.ingot")))
assert finished > 5
assert not (path / "y" / "dataset.json").exists()

with ingot.DatasetWriter(path / "x", SPEC, append=True) as writer:
    writer.append({"b": b"small"})
    ballast = (path / "ballast").open("wb", buffering=0)
    with contextlib.suppress(OSError):
        while True:
            ballast.write(bytes(4096))
    refused(writer.flush)
    assert list(ingot.open(path / "x")) == before
    ballast.close()
    (path / "ballast").unlink()
    writer.abandon()
assert sorted(listed()) == files
