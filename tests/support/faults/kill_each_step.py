"""Stop a process at each step in turn; what was committed must be there.

Run as `kill_each_step.py SCENARIO FOLDER UNIT HOW`. A step is a line of `ingot.dataset`, if the
unit is `line`, or with `call` what changes a file. At that step the process is killed, or
interrupted (`interrupt`), or the system refuses the step (`error`). Prints at how many steps
that was done.
"""

import errno
import json
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path
from types import MappingProxyType

import ingot
from ingot.dataset import commit
from ingot.dataset.write.journal import Journal

SPEC = {"a": "int"}
PACKAGE = str(Path(ingot.__file__).parent / "dataset")
CALLS = {"open", "os.rename", "os.remove", "os.truncate", "os.mkdir"}
QUICK = {"sync": False, "shard_rows": 2}


def write(path, numbers, **options):
    with ingot.DatasetWriter(path, SPEC, **QUICK, **options) as writer:
        writer.extend({"a": k} for k in numbers)


def row(k):
    return {"a": k}


def other_row(k):
    return {"a": 10 * k}


def failing_row(k):
    raise ArithmeticError(k)


def build(path, fn=row, **options):
    options = {"workers": 0, "chunk": 2, "progress": None, "sync": False} | options
    return ingot.build(path, fn, range(5), spec=SPEC, **options)


def column(path):
    return ingot.open(path).column("a").tolist() if (path / "dataset.json").exists() else None


class Append:
    """A writer goes on with a data set and commits twice."""

    allowed = ([1], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5])

    def begin(self, path):
        write(path, [1])

    def run(self, path):
        with ingot.DatasetWriter(path, SPEC, append=True, **QUICK) as writer:
            writer.extend({"a": k} for k in (2, 3, 4))
            writer.flush()
            writer.append({"a": 5})

    def again(self, path, found):
        write(path, range(len(found) + 1, 6), append=True)
        return [1, 2, 3, 4, 5]


class Overwrite:
    """A writer replaces a data set."""

    allowed = ([1, 2, 3], [7, 8, 9])

    def begin(self, path):
        write(path, [1, 2, 3])

    def run(self, path):
        write(path, [7, 8, 9], overwrite=True)

    def again(self, path, _found):
        self.run(path)
        return [7, 8, 9]


class Last:
    """The last of three writers replaces a data set."""

    allowed = ([1, 2, 3], [10, 20, 21, 22, 30])

    def begin(self, path):
        write(path, [1, 2, 3])
        for number, numbers in ((0, [10]), (2, [30])):
            write(path, numbers, shard=(number, 3), overwrite=True)

    def run(self, path):
        write(path, [20, 21, 22], shard=(1, 3), overwrite=True)

    def again(self, path, found):
        if found == [1, 2, 3]:
            self.run(path)
        return [10, 20, 21, 22, 30]


class First:
    """The first of two writers leaves its part, for the second time."""

    allowed = (None,)

    def begin(self, path):
        write(path, [8, 9], shard=(0, 2))

    def run(self, path):
        write(path, [1, 2, 3], shard=(0, 2))

    def again(self, path, _found):
        write(path, [4], shard=(1, 2))
        if not (path / "dataset.json").exists():
            self.run(path)
        first = column(path)[:-1]
        assert first in ([8, 9], [1, 2, 3]), first
        return [*first, 4]


class Commit:
    """All parts are there, and are committed."""

    allowed = (None, [1, 2, 3])

    def begin(self, path):
        write(path, [3], shard=(1, 2))
        part = path / "part-0-00001-of-00002.json"
        hidden = part.rename(path.parent / "hidden")
        write(path, [1, 2], shard=(0, 2))
        hidden.rename(part)

    def run(self, path):
        commit(path)

    def again(self, path, _found):
        commit(path)
        return [1, 2, 3]


class Build:
    """A data set is built in three chunks."""

    allowed = (None, [0, 1, 2, 3, 4])

    def begin(self, path):
        pass

    def run(self, path):
        build(path)

    def again(self, path, found):
        calls = []

        def fn(k):
            calls.append(k)
            return row(k)

        fn.__module__, fn.__qualname__ = row.__module__, row.__qualname__
        path.mkdir(exist_ok=True)
        with Journal(path) as journal:
            done = set(journal.chunks)
        build(path, fn)
        assert calls == ([] if found else [k for k in range(5) if k // 2 not in done])
        return [0, 1, 2, 3, 4]


class Rebuild:
    """A data set that was built is built anew, once more if that fails."""

    allowed = ([0, 1, 2, 3, 4], [0, 10, 20, 30, 40])

    def begin(self, path):
        build(path)

    def run(self, path):
        build(path, other_row, overwrite=True, sync=True)

    def again(self, path, _found):
        build(path, other_row, overwrite=True)
        return [0, 10, 20, 30, 40]


class RebuildOther(Rebuild):
    """After a build that was stopped another one is begun, whose function fails."""

    def again(self, path, found):
        for options in ({"overwrite": True}, {"overwrite": True, "resume": False}):
            try:
                build(path, failing_row, **options)
            except ArithmeticError:
                assert column(path) == found, (found, column(path))
        build(path, row, overwrite=True, resume=False)
        return [0, 1, 2, 3, 4]


class Insist:
    """A writer replaces a data set, and is closed again if that fails."""

    allowed = ([1, 2, 3], [7, 8, 9])
    options = MappingProxyType({"overwrite": True})

    def begin(self, path):
        write(path, [1, 2, 3])

    def run(self, path):
        writer = ingot.DatasetWriter(path, SPEC, shard_rows=2, **self.options)
        writer.extend({"a": k} for k in (7, 8, 9))
        try:
            writer.flush()
            writer.close()
        except (KeyboardInterrupt, OSError) as error:
            try:
                writer.close()
            except ingot.StorageError:
                if isinstance(error, KeyboardInterrupt):
                    sys.exit("an interrupt is no reason to refuse a second try")
                writer.abandon()
            else:
                assert column(path) in self.allowed
                assert column(path) != [1, 2, 3], "it was closed without an error"
            raise

    def again(self, path, _found):
        write(path, [7, 8, 9], overwrite=True)
        return [7, 8, 9]


class InsistAppending(Insist):
    """A writer goes on with a data set, and is closed again if that fails."""

    allowed = ([1, 2, 3], [1, 2, 3, 7, 8], [1, 2, 3, 7, 8, 9])
    options = MappingProxyType({"append": True})


class Compact:
    """Small files are put together, two at a time."""

    allowed = ([1, 2, 3, 4, 5],)

    def begin(self, path):
        for k in range(1, 6):
            write(path, [k], append=True)

    def run(self, path):
        ingot.compact(path, shard_rows=2)

    def again(self, path, found):
        assert ingot.compact(path, shard_rows=2) == 3
        return found


class Countdown:
    """Stops this process at one of its steps."""

    def __init__(self, steps):
        self.left = steps

    def count(self):
        self.left -= 1
        if self.left == 0 and sys.argv[4] == "interrupt":
            raise KeyboardInterrupt
        if self.left == 0 and sys.argv[4] == "error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def trace(self, frame, event, _argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            self.count()
        return self.trace

    def audit(self, event, arguments):
        if event in CALLS and str(arguments[0]).startswith(sys.argv[2]):
            self.count()


def run_until(scenario, path, step):
    """Have a process stopped at a step; return whether it came so far."""
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (-signal.SIGKILL, 0, 1, 3), code
        return code != 0
    countdown = Countdown(step)
    if sys.argv[3] == "line":
        sys.settrace(countdown.trace)
    else:
        sys.addaudithook(countdown.audit)
        sync = os.fsync

        def counted(handle):
            countdown.count()
            sync(handle)

        os.fsync = counted
    try:
        scenario.run(path)
    except (KeyboardInterrupt, OSError):
        os._exit(1)
    except BaseException:  # noqa: BLE001 -- all that goes wrong is told
        traceback.print_exc()
        os._exit(2)
    # A step that may fail, such as making a directory that is there, stops nothing.
    os._exit(3 if countdown.left <= 0 else 0)


def check(scenario, path, step):
    found = column(path)
    assert found in scenario.allowed, (step, found)
    expected = scenario.again(path, found)
    assert column(path) == expected, (step, column(path), expected)
    ingot.DatasetWriter(path, SPEC, append=True).abandon()
    ingot.compact(path, shard_rows=1, keep_for=0)
    manifest = json.loads((path / "dataset.json").read_text())
    listed = {shard["name"] for shard in manifest["shards"]} | {"dataset.json"}
    assert {entry.name for entry in path.iterdir()} == listed, step


scenarios = (
    *(Append, Overwrite, Last, First, Commit, Build),
    *(Rebuild, RebuildOther, Insist, InsistAppending, Compact),
)
scenario = {one.__name__.lower(): one for one in scenarios}[sys.argv[1]]()
was_stopped, step = True, 0
while was_stopped:
    step += 1
    path = Path(sys.argv[2]) / str(step)
    scenario.begin(path)
    was_stopped = run_until(scenario, path, step)
    check(scenario, path, step)
    shutil.rmtree(path)
sys.stdout.write(str(step - 1))
