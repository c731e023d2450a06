"""Interrupt a writer of H5Record's API at each line in turn; the next one must succeed.

Run as `h5record_interrupt_each_line.py FOLDER SCENARIO SUFFIX`. The scenario is `create` or
`append`. Prints at how many lines it was interrupted.
"""

import shutil
import sys
from pathlib import Path

import ingot
from ingot.compat.h5record import H5Dataset, Integer, Sequence, String

FOLDER, SCENARIO, SUFFIX = sys.argv[1:]
PACKAGE = Path(ingot.__file__).parent
FILES = tuple(str(PACKAGE / one) for one in ("compat/h5record", "dataset/hdf5/writer.py"))
SCHEMA = [Integer("i"), String("t"), Sequence("s")]


def rows(start, stop):
    return [{"i": k, "t": f"text {k}", "s": list(range(k))} for k in range(start, stop)]


def write(path, data):
    H5Dataset(SCHEMA, path, data, chunk_size=2, append_mode=SCENARIO == "append")


def read(path):
    found = list(H5Dataset(SCHEMA, path))
    assert all(row["t"] == f"text {row['i']}" for row in found)
    assert all(row["s"][0].tolist() == list(range(row["i"])) for row in found)
    return [int(row["i"]) for row in found]


class Countdown:
    """Interrupts this thread at one of its lines."""

    def __init__(self, lines):
        self.left = lines

    def trace(self, frame, event, _argument):
        if not frame.f_code.co_filename.startswith(FILES):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.trace


def interrupted(path, line):
    """Write until a line; return whether it was reached."""
    sys.settrace(Countdown(line).trace)
    try:
        write(path, rows(3, 8))
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def check(path, line):
    before = [0, 1, 2] if SCENARIO == "append" else None
    after = [*(before or []), 3, 4, 5, 6, 7]
    try:
        found = read(path)
    except FileNotFoundError:
        found = None
    except ingot.UnfinishedFileError:
        assert (SUFFIX, SCENARIO) == ("ingot", "create"), (line, "the file is not finished")
        found = None
    assert found in (before, after), (line, found)
    write(path, rows(3, 8))
    wanted = after if SCENARIO == "create" else found + after[3:]
    assert read(path) == wanted, (line, found, read(path))
    stray = [one for one in path.parent.iterdir() if not one.samefile(path)]
    assert not stray, (line, stray)


was_interrupted, line = True, 0
while was_interrupted:
    line += 1
    path = Path(FOLDER) / "x" / f"x.{SUFFIX}"
    path.parent.mkdir()
    if SCENARIO == "append":
        H5Dataset(SCHEMA, path, rows(0, 3))
    was_interrupted = interrupted(path, line)
    check(path, line)
    shutil.rmtree(path.parent)
sys.stdout.write(str(line - 1))
