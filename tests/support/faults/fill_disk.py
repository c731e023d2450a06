"""Write until there is no room. The error must name the place and stay; commits must survive."""

import errno
import os
import random
import resource
import sys

import ingot

path, limit = sys.argv[1:]
expected = errno.EFBIG if limit == "file" else errno.ENOSPC
if limit == "file":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
rng = random.Random(0)
records = [rng.randbytes(1000) for _ in range(50)]


def fill(writer):
    for k in range(100_000):
        writer.append(records[k % 50])
        if k % 100 == 99:
            writer.flush()


def refused(call, *arguments):
    try:
        call(*arguments)
    except ingot.StorageError as error:
        return error
    sys.exit(f"{call.__name__} raised nothing")


writer = ingot.Writer(path, compression=None)
first = refused(fill, writer)
assert first.errno == expected, first.errno
assert first.path == path
assert first.record >= writer.num_committed
assert 0 < first.offset <= 1 << 20, first.offset
assert str(first).startswith(f"{path}: record {first.record}: offset {first.offset}: write failed")
for later in [refused(writer.append, b"x"), refused(writer.flush), refused(writer.close)]:
    assert (str(later), later.errno, later.offset) == (str(first), first.errno, first.offset)
committed = writer.num_committed
assert committed > 500
assert committed % 100 == 0

with ingot.open(path, partial=True) as reader:
    assert len(reader) >= committed
    assert list(reader) == [records[k % 50] for k in range(len(reader))]
if limit == "file":
    os._exit(0)
ballast = f"{path}.ballast"
if os.path.exists(ballast):  # noqa: PTH110
    os.remove(ballast)  # noqa: PTH107
assert ingot.recover(path).rows >= committed
with ingot.open(path) as reader:
    assert reader.verify().ok
