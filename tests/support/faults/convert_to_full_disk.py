"""Convert to a disk without room: `convert_to_full_disk.py SOURCE FOLDER`; nothing may stay."""

import errno
import sys
from pathlib import Path

import ingot

source, folder = sys.argv[1], Path(sys.argv[2])
TARGETS = ("x.ingot", "x.ffr", "x.array_record", "x.bag", "x.h5", "x.tfrecord", "x.tar", "x")
for target in TARGETS:
    try:
        ingot.convert(source, folder / target, workers=0)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    else:
        sys.exit(f"{target}: there was room")
    assert not (folder / target).exists(), target
    left = [one.name for one in folder.iterdir()]
    # What is finished of a directory is kept for the next call.
    assert left == ([".x.converting"] if target == "x" else []), (target, left)
