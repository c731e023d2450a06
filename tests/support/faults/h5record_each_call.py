"""Stop a writer of H5Record's API at each system call that changes a file, in turn.

Run as `h5record_each_call.py STRACE FOLDER SCENARIO SUFFIX HOW`. The scenario is `create` or
`append`. HOW is `kill`, after which the file must be the old one or the new one, and the next
writer must succeed; `fail`: the call fails once, of which the writer must be told unless the
file is right; or `meet`: the writer is held up, another one runs from its beginning to its
end, and what both were told must be true. Prints at how many calls that was.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import ingot
from ingot.compat.h5record import H5Dataset, Image, Integer, Sequence, String

STRACE, FOLDER, SCENARIO, SUFFIX, HOW = sys.argv[1:]
CALLS = (
    "openat,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,"
    "rename,renameat,renameat2,link,linkat,unlink,unlinkat,copy_file_range,sendfile,chmod,fchmod,"
    "fchmodat,io_uring_enter"
)
SCHEMA = [Integer("i"), String("t"), Sequence("s"), Image(3, 4, 3)]
FAULT = {"kill": "signal=SIGKILL", "meet": "signal=SIGSTOP", "fail": "error=EIO"}[HOW]


def rows(start, stop):
    return [
        {"i": k, "t": f"text {k}", "s": list(range(k % 5)), "image": [[[k % 99] * 4] * 3] * 3}
        for k in range(start, stop)
    ]


OLD, NEW, OTHER = rows(0, 20), rows(20, 45), rows(1000, 1030)


def write(path, data):
    H5Dataset(SCHEMA, path, data, chunk_size=10, append_mode=SCENARIO == "append")


def read(path):
    """Return the numbers of the rows of a file, each of which must have all of its values."""
    found = list(H5Dataset(SCHEMA, path))
    for row in found:
        k = row["i"]
        assert (row["t"], row["s"][0].tolist()) == (f"text {k}", list(range(k % 5))), k
        assert (row["image"] == k % 99).all(), k
    return [int(row["i"]) for row in found]


def committed(path):
    """Return the numbers of the rows of an Ingot file that is not finished."""
    try:
        with ingot.open(path, partial=True) as found:
            return [int(row["i"]) for row in found] if isinstance(found, ingot.Dataset) else []
    except ingot.FormatError:  # Not even its header is there.
        return []


def start(path, *options):
    """Begin to write in a process that is traced."""
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(wait, 1)
        try:
            write(path, NEW)
        except (OSError, ValueError):
            os._exit(3)
        os._exit(0)
    tracer = subprocess.Popen(
        [STRACE, "-f", "-p", str(child), *options], stderr=subprocess.PIPE, text=True
    )
    said = tracer.stderr.readline()
    assert "attached" in said, said
    os.write(go, b"x")
    os.close(wait)
    os.close(go)
    return child, tracer


def stopped(path, name, number):
    """Begin to write in a process that meets the fault at one of its calls."""
    fault = f"inject={name}:{FAULT}:when={number}"
    return start(path, "-o", os.devnull, "-e", f"trace={name}", "-e", fault)


def calls(path):
    """Return the calls of a writer that is not stopped, each with its number in a thread."""
    log = path.with_name("log")
    names = ",".join(f"?{name}" for name in CALLS.split(","))
    assert ended(*start(path, "-o", str(log), "-e", f"trace={names}")) == 0
    counts = Counter(re.findall(r"^(\d+) +(\w+)\(", log.read_text(), re.MULTILINE))
    return sorted({(name, k + 1) for (_, name), count in counts.items() for k in range(count)})


def ended(child, tracer):
    """Return how a process ended, which goes on if each of its threads was stopped."""
    while os.WIFSTOPPED(status := os.waitpid(child, os.WUNTRACED)[1]):
        os.kill(child, signal.SIGCONT)
    tracer.communicate()
    return os.waitstatus_to_exitcode(status)


def check_ended(path, call):
    """End a writer at a call, or let that fail; return whether there was one."""
    status = ended(*stopped(path, *call))
    assert status in (0, -signal.SIGKILL if HOW == "kill" else 3), (call, status)
    before = [row["i"] for row in OLD] if SCENARIO == "append" else None
    after = [*(before or []), *(row["i"] for row in NEW)]
    try:
        found = read(path)
    except FileNotFoundError:
        assert not path.exists()
        found = None
    except ingot.UnfinishedFileError:
        assert SUFFIX == "ingot", "a file of HDF5 is whole or has no name"
        assert status != 0, call
        left = committed(path)
        assert left == after[: len(left)], (call, left)
        assert len(left) >= len(before or []), (call, left)
        if SCENARIO == "append":
            H5Dataset(SCHEMA, path, NEW[len(left) - 20 :], append_mode=True)
            assert read(path) == after, call
            return status != 0
        found = None
    assert found in ((before, after) if status else (after,)), (call, found)
    write(path, NEW)
    wanted = after if SCENARIO == "create" else found + after[20:]
    assert read(path) == wanted, (call, read(path))
    stray = [one for one in path.parent.iterdir() if not one.samefile(path)]
    assert not stray, (call, stray)
    return status != 0


def check_met(path, call):
    """Hold a writer up behind a call, while another one runs; return whether there was one."""
    child, tracer = stopped(path, *call)
    status = os.waitpid(child, os.WUNTRACED)[1]
    if not os.WIFSTOPPED(status):
        tracer.communicate()
        return False
    has_other = True
    try:
        write(path, OTHER)
    except (OSError, ingot.FormatError):
        has_other = False
    os.kill(child, signal.SIGCONT)
    status = ended(child, tracer)
    assert status in (0, 3), (call, status)
    has_new = status == 0
    assert has_new or has_other, call
    found = read(path)
    old, new, other = ([row["i"] for row in some] for some in (OLD, NEW, OTHER))
    if SCENARIO == "create":  # A writer that finds the file of the other has nothing to do.
        assert found in (new, other), (call, found)
        return True
    allowed = (old + new * has_new + other * has_other, old + other * has_other + new * has_new)
    assert found in allowed, (call, has_new, has_other, found)
    return True


def prepared(name):
    """Return a path in a folder of its own, where the old file is if the scenario has one."""
    path = Path(FOLDER) / name / f"x.{SUFFIX}"
    path.parent.mkdir()
    if SCENARIO == "append":
        H5Dataset(SCHEMA, path, OLD, chunk_size=10)
    return path


write(prepared("warm"), NEW)  # Everything that is imported late is there now.
count = 0
for call in calls(prepared("calls")):
    path = prepared("x")
    count += (check_met if HOW == "meet" else check_ended)(path, call)
    shutil.rmtree(path.parent)
sys.stdout.write(str(count))
