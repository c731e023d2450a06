"""Packs and what they are made of."""

import itertools
import json
import os
import resource
import struct
import zlib
from contextlib import contextmanager
from pathlib import Path

import ingot
from tests.support import DATA

GOLDEN = DATA / "packed" / "v1.ingot"
FFRECORD = DATA / "ffrecord"
MANIFEST = json.loads((FFRECORD / "manifest.json").read_text())["files"]
SAME_TREE = ["packed.ffr", "packed_proto2.ffr", "packed_proto3.ffr", "packed_proto5.ffr"]

TREE = {
    "A.txt": b"upper case sorts first",
    "b.txt": b"bytes \xff",
    "empty": b"",
    "emptydir": {},
    "images": {"1.png": b"one", "10.png": b"ten", "2.png": b"two", "labels": {"1.txt": b"cat"}},
    "images.txt": b"a list",
    "sub": {"deep": {"er": {"x.tar.gz": b"deep down"}, "noext": b"n"}, ".hidden": b"h"},
    "\u6f22\u5b57 and space": b"\x00" * 1000,
}
ORDER = [
    "A.txt",
    "b.txt",
    "empty",
    "images/1.png",
    "images/10.png",
    "images/2.png",
    "images/labels/1.txt",
    "images.txt",
    "sub/.hidden",
    "sub/deep/er/x.tar.gz",
    "sub/deep/noext",
    "\u6f22\u5b57 and space",
]


def build(folder, tree):
    folder.mkdir()
    for name, entry in tree.items():
        if isinstance(entry, dict):
            build(folder / name, entry)
        else:
            (folder / name).write_bytes(entry)


def read_back(folder):
    """Return a folder on disk as the tree it was built from."""
    return {
        entry.name: read_back(Path(entry.path)) if entry.is_dir() else Path(entry.path).read_bytes()
        for entry in os.scandir(folder)
    }


def flatten(tree, prefix=""):
    for name, entry in tree.items():
        if isinstance(entry, dict):
            yield from flatten(entry, f"{prefix}{name}/")
        else:
            yield prefix + name, entry


def write_pack(path, tree, *, files=(b"first", b"second"), metadata=None):
    """Write a pack with any bytes, or any JSON, in the place of its tree."""
    record = tree if isinstance(tree, bytes) else json.dumps({"version": 1, "tree": tree}).encode()
    marked = {"ingot.packed": 1} if metadata is None else metadata
    with ingot.Writer(path, metadata=marked) as writer:
        writer.extend([*files, record])
    return path


def write_ffrecord(path, records):
    offsets = itertools.accumulate(map(len, records[:-1]), initial=12 + 12 * len(records))
    checksums = map(zlib.crc32, records)
    head = struct.pack(
        f"<q{len(records)}I{len(records)}q", len(records), *checksums, *list(offsets)
    )
    path.write_bytes(struct.pack("<I", zlib.crc32(head)) + head + b"".join(records))
    return path


@contextmanager
def without_privileges():
    """Drop the right of the superuser to write to read-only folders."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@contextmanager
def no_file_larger_than(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def nested(depth):
    tree = {"f": 0}
    for _ in range(depth):
        tree = {"d": tree}
    return tree
