"""Interrupt a writer of H5Record's API at each line in turn; the next one must succeed.

Run as `h5record_interrupt_each_line.py FOLDER SCENARIO SUFFIX`. The scenario is `create`,
`append`, or `resume`: a new file is gone on with behind the rows of which the note tells.
Prints at how many lines it was interrupted.
"""

import re
import shutil
import sys
from pathlib import Path

import ingot
from ingot.compat.h5record import H5Dataset, Integer, Sequence, String

FOLDER, SCENARIO, SUFFIX = sys.argv[1:]
PACKAGE = Path(ingot.__file__).parent
FILES = tuple(str(PACKAGE / one) for one in ("compat/h5record", "dataset/write/hdf5"))
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


def is_in_del(frame):
    """Whether an exception would go nowhere."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


class Countdown:
    """Interrupts this thread at one of its lines."""

    def __init__(self, lines):
        self.left = lines
        self.place = ""

    def trace(self, frame, event, _argument):
        if not frame.f_code.co_filename.startswith(FILES) or is_in_del(frame):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self.trace


def interrupted(path, line):
    """Write until a line; return where that was, None without such a line, and the notes."""
    countdown = Countdown(line)
    sys.settrace(countdown.trace)
    try:
        write(path, rows(3, 6))
    except KeyboardInterrupt as error:
        return countdown.place, " ".join(getattr(error, "__notes__", []))
    finally:
        sys.settrace(None)
    assert not countdown.place, countdown.place
    return None, ""


def check(path, place, notes):
    before = [0, 1, 2] if SCENARIO == "append" else None
    after = [*(before or []), 3, 4, 5]
    try:
        found = read(path)
    except FileNotFoundError:
        found = None
    except ingot.UnfinishedFileError:
        assert SUFFIX == "ingot", (place, "the file is not finished")
        assert SCENARIO != "append", (place, "the file is not finished")
        found = None
    assert found in (before, after), (place, found)
    if SCENARIO == "resume" and found is None:
        kept = re.search(r"(\d+) rows", notes)
        rest = rows(3 + int(kept[1]) if kept else 3, 6)
        H5Dataset(SCHEMA, path, rest, append_mode=kept is not None)
    else:
        write(path, rows(3, 6))
    wanted = found + after[3:] if SCENARIO == "append" else after
    assert read(path) == wanted, (place, found, read(path))
    stray = [one for one in path.parent.iterdir() if not one.samefile(path)]
    assert not stray, (place, stray)


place, line = "", 0
while place is not None:
    line += 1
    path = Path(FOLDER) / "x" / f"x.{SUFFIX}"
    path.parent.mkdir()
    if SCENARIO == "append":
        H5Dataset(SCHEMA, path, rows(0, 3))
    place, notes = interrupted(path, line)
    check(path, place, notes)
    shutil.rmtree(path.parent)
sys.stdout.write(str(line - 1))
