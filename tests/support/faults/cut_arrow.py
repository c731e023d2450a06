"""Have an Arrow file cut while it is read: `cut_arrow.py PATH` prints the errors."""

import os
import sys
from pathlib import Path

import ingot
from ingot.formats.arrow.blocks import Blocks

path = Path(sys.argv[1])
content = path.read_bytes()
taken = Blocks.take


def cut_first(*arguments):
    """Cut the file after it was looked at, and before it is read."""
    os.truncate(path, len(content) // 8)
    return taken(*arguments)


for is_known in (False, True):
    for read in (lambda ds: ds[-1], lambda ds: ds[[5, -5]], lambda ds: ds.column("x")):
        path.write_bytes(content)
        ds = ingot.open(path)
        if is_known:
            read(ds)
        Blocks.take = cut_first
        try:
            sys.stdout.write(f"read {read(ds)}\n")
        except ingot.FormatError as error:
            sys.stdout.write(f"{error}\n")
        Blocks.take = taken
