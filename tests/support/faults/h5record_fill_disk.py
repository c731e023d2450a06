"""Write by H5Record's API until there is no room; nothing that is left may pass for whole.

Run as `h5record_fill_disk.py PATH LIMIT`: the limit is `disk` for one that is full, `file` for
one that lets no file grow further. Files beside it that end in `.ballast` can be removed.
"""

import errno
import itertools
import random
import resource
import signal
import sys
from pathlib import Path

import ingot
from ingot.compat.h5record import H5Dataset, Image, Integer, Sequence, String

path, limit = Path(sys.argv[1]), sys.argv[2]
SCHEMA = [Integer("i"), String("t"), Sequence("s"), Image(8, 8, 3)]
NUMBERS = {"disk": errno.ENOSPC, "file": errno.EFBIG}
rng = random.Random(0)
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)


def row(k):
    picture = list(rng.randbytes(192))
    return {
        "i": k,
        "t": f"text {k}" * 9,
        "s": list(range(k % 50)),
        "image": [[picture[c * 64 + y * 8 :][:8] for y in range(8)] for c in range(3)],
    }


def full(**options):
    """Write more rows than there is room for, of which the error must tell."""
    try:
        H5Dataset(SCHEMA, path, map(row, itertools.count()), **options)
    except OSError as error:
        told = (error.errno, str(path) in str(error), len(error.__notes__))
        if told == (NUMBERS[limit], True, 1):
            return
        raise
    sys.exit("there was room")


def numbers():
    return [int(row["i"]) for row in H5Dataset(SCHEMA, path)]


def is_whole():
    try:
        return bool(numbers())
    except (FileNotFoundError, ingot.UnfinishedFileError):
        return False


if limit == "file":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, unlimited[1]))
for options in ({}, {"chunk_size": 7}, {"compression": "gzip"}, {"append_mode": True}):
    full(**options)
    assert not is_whole(), options
    if path.suffix == ".h5":
        assert not path.exists(), options
for one in path.parent.glob("*.ballast"):
    one.unlink()
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
for one in path.parent.glob(f"{path.name}*"):
    one.unlink()
H5Dataset(SCHEMA, path, map(row, range(100)))
assert numbers() == list(range(100))
before = path.read_bytes()
if limit == "file":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, unlimited[1]))
for options in ({}, {"chunk_size": 7}):
    full(append_mode=True, **options)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert numbers() == list(range(100))
sys.stdout.write("ok")
