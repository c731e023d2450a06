"""Stop a call of a writer at each of its steps in turn, call it again, and compare the rows.

Run as `stop_writer_each_step.py FOLDER TARGET CALL HOW EVERY`. The target is `directory`, `part`
(of a writer that has a number), `file` (a data set in one file) or `records`; the call is
`append`, `columns`, `list`, `flush` or `close`.
A step is a line of Ingot, at which the call is interrupted (HOW is `line`), or a system call,
which fails with an error (`EIO`, say) or during which Ctrl-C is pressed (`SIGINT`). Only every
EVERY-th step is taken. Prints how many steps that were, and after how many the writer had failed.
"""

import contextlib
import gc
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

import ingot
from ingot.dataset.write import target as target_module

FOLDER, TARGET, CALL, HOW, EVERY = sys.argv[1:]
IN_DIRECTORY = TARGET in ("directory", "part")
PACKAGE = str(Path(ingot.__file__).parent)
SYSTEM_CALLS = (
    *("openat", "read", "pread64", "write", "pwrite64", "fsync", "fdatasync", "ftruncate"),
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir"),
    *("flock", "newfstatat", "statx", "getdents64"),
)
OPTIONS = {"compression": None, "sync": HOW != "line"}
target_module._PAUSE_S = 0  # Each full file is committed at once.


def open_writer(path, **options):
    if TARGET == "records":
        return ingot.Writer(path, **OPTIONS, **options)
    rows = {"shard_rows": 2} if IN_DIRECTORY else {}
    part = {"shard": (1, 2)} if TARGET == "part" and not options else {}
    return ingot.DatasetWriter(path, {"a": "int"}, **OPTIONS, **rows, **part, **options)


def row_of(number):
    return b"%d" % number if TARGET == "records" else {"a": number}


def read(path):
    if IN_DIRECTORY:
        return ingot.open(path).column("a").tolist()
    found = ingot.open(path, partial=True)
    return [int(one) if TARGET == "records" else one["a"] for one in found]


class Run:
    """Calls of a user, who repeats the one that failed."""

    def __init__(self, path):
        self.path = path
        if TARGET == "part":
            ingot.DatasetWriter(path, {"a": "int"}, shard=(0, 2)).close()
        self.writer = open_writer(path)
        self.give(0)
        if TARGET != "part":
            self.writer.flush()
        self.give(1, 2, 3)

    def give(self, *numbers):
        for number in numbers:
            self.writer.append(row_of(number))

    def call(self):
        new = [4, 5, 6]
        if CALL == "append":
            self.give(4)
        elif CALL == "columns":
            self.writer.extend({"a": new})
        elif CALL == "list":
            done = len(self.writer) - 4
            self.writer.extend([row_of(one) for one in new[done:]])
        else:
            getattr(self.writer, CALL)()

    def after(self, *, again):
        """Go on, with the same call if it has raised; return whether the writer has failed."""
        calls = [self.call] if again else []
        if CALL != "close":
            calls += [lambda: self.give(9), self.writer.flush, self.writer.close]
        failed = False
        for call in calls:
            try:
                call()
            except (ingot.StorageError, ingot.ClosedError):
                failed = True
            else:
                assert not failed, "it has failed, and goes on"
        return failed

    def check(self, *, failed):
        found = read(self.path) if self.path.exists() and not self.is_empty() else []
        more = {"append": 1, "columns": 3, "list": 3}.get(CALL, 0)
        wanted = list(range(4 + more))
        if failed:
            assert found == wanted[: len(found)], found
            assert found or TARGET == "part", "the row that was flushed is lost"
        else:
            assert found == (wanted if CALL == "close" else [*wanted, 9]), found
        with open_writer(self.path, append=True) as writer:
            writer.append(row_of(1000))
        assert read(self.path) == [*found, 1000]
        if IN_DIRECTORY and not list(self.path.glob("part-*")):
            manifest = json.loads((self.path / "dataset.json").read_text())
            listed = {one["name"] for one in manifest["shards"]} | {"dataset.json"}
            assert {one.name for one in self.path.iterdir()} == listed

    def is_empty(self):
        return IN_DIRECTORY and not (self.path / "dataset.json").exists()


def finish(run, *, again):
    """Check a run whose call was stopped; return whether the writer has failed."""
    failed = run.after(again=again)
    del run.writer
    gc.collect()
    run.check(failed=failed)
    return failed


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
        self.place = None

    def trace(self, frame, event, _argument):
        if not frame.f_code.co_filename.startswith(PACKAGE) or is_in_del(frame):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self.trace


def stop_at_line(path, line):
    """Interrupt a call at a line; return whether it has that many, and whether it failed."""
    run, countdown = Run(path), Countdown(line)
    sys.settrace(countdown.trace)
    try:
        run.call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    if countdown.place is None:
        run.writer.abandon()
        return False, False
    try:
        return True, finish(run, again=True)
    except BaseException as error:
        error.add_note(f"interrupted at line {line}, {countdown.place}")
        raise


def stop_at_system_call(path, name, number):
    """Have a system call of a call fail; return whether there are so many, and whether it failed.

    A process of its own makes the calls; strace is attached to it during the one to be stopped.
    """
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            os._exit(1 if make_calls(path, there) else 0)
        except BaseException:  # noqa: BLE001 -- all that goes wrong is told
            traceback.print_exc()
        os._exit(2)
    there.close()
    here.recv(1)
    log = Path(FOLDER) / "log"
    fault = "signal=INT" if HOW == "SIGINT" else f"error={HOW}"
    command = ["strace", "-f", "-qq", "-p", str(child), "-o", str(log), "-e", f"trace={name}"]
    tracer = subprocess.Popen([*command, "-e", f"inject={name}:{fault}:when={number}"])
    while "TracerPid:\t0\n" in Path(f"/proc/{child}/status").read_text():
        assert tracer.poll() is None
        time.sleep(0.001)
    with contextlib.suppress(BrokenPipeError):  # The exit code tells what went wrong.
        here.send(b"x")
        here.recv(1)
        tracer.terminate()
        here.send(b"x")
    tracer.wait()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    here.close()
    text = log.read_text()
    log.unlink()
    assert code in (0, 1), f"{name} number {number}: exit {code}\n{text}"
    return "(INJECTED)" in text or "--- SIGINT" in text, code == 1


def make_calls(path, gate):
    """Make the calls of a process of its own; return whether the writer has failed."""
    run = Run(path)
    gate.send(b"x")
    gate.recv(1)
    is_done = False
    try:
        run.call()
        is_done = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except (KeyboardInterrupt, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    gate.send(b"x")
    gate.recv(1)
    return finish(run, again=not is_done)


def steps():
    if HOW == "line":
        yield from [(stop_at_line, ())]
    else:
        yield from [(stop_at_system_call, (name,)) for name in SYSTEM_CALLS]


first = Run(Path(FOLDER) / ("first" if IN_DIRECTORY else "first.ingot"))
first.call()  # Modules are imported here.
first.writer.close()
read(first.path)
warnings.simplefilter("error")
warnings.simplefilter("ignore", ResourceWarning)
count = failures = 0
for stop, given in steps():
    for number in itertools.count(1, int(EVERY)):
        path = Path(FOLDER) / ("x" if IN_DIRECTORY else "x.ingot")
        was_stopped, failed = stop(path, *given, number)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        count, failures = count + was_stopped, failures + failed
        if not was_stopped:
            break
sys.stdout.write(f"{count} {failures}")
