"""Write a file while a child of this process comes and goes, early or late."""

import os
import sys
import time

from ingot.compat.h5record import H5Dataset, Integer, String

SCHEMA = [Integer("a"), String("text")]
path, when, begun = sys.argv[1], sys.argv[2], int(sys.argv[3])
children = []


def some(start, stop):
    return [{"a": k, "text": f"text {k}"} for k in range(start, stop)]


def given():
    yield from some(begun, begun + 350)
    child = os.fork()
    if child == 0:
        time.sleep(0 if when == "early" else 1.5)
        sys.exit(0)
    children.append(child)
    if when == "early":
        assert os.waitpid(child, 0)[1] == 0
    yield from some(begun + 350, begun + 700)


if begun:
    H5Dataset(SCHEMA, path, some(0, begun)).close()
with H5Dataset(SCHEMA, path, given(), append_mode=bool(begun), chunk_size=100) as found:
    assert len(found) == begun + 700
    assert found[begun + 699]["a"] == begun + 699
if when == "late":
    assert os.waitpid(children[0], 0)[1] == 0
sys.stdout.write("ok")
