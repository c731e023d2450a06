"""Replace a directory by a conversion that is killed at each line of its draft in turn.

Run as `replace_and_kill.py FOLDER NAME`. After each kill, the target must be the old data set or
the whole new one, and the same conversion must succeed. Prints at how many lines it was killed,
and how often that left the old data set and the new one.
"""

import itertools
import os
import shutil
import signal
import sys
from pathlib import Path

import ingot
from ingot.conversion import draft


def killed_at(line, convert):
    """Run in a child that kills itself at a line; return whether there was one."""
    child = os.fork()
    if not child:
        lines = itertools.count()

        def step(_, event, __):
            if event == "line" and next(lines) == line:
                os.kill(os.getpid(), signal.SIGKILL)
            return step

        sys.settrace(lambda frame, *_: step if frame.f_code.co_filename == draft.__file__ else None)
        convert()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main(folder, name):
    """Kill a conversion at each line."""
    source, target = folder / "x.ingot", folder / name
    with ingot.Writer(source, sync=False) as writer:
        writer.extend([b"a", b"b", b"c"])

    def convert():
        ingot.convert(source, target, overwrite=True, workers=0, sync=False)

    found = {"old": 0, "new": 0}
    for line in itertools.count():
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        with ingot.DatasetWriter(folder / "made", {"a": "int"}, sync=False) as writer:
            writer.append({"a": 7})
        (folder / "made").rename(target)
        was_killed = killed_at(line, convert)
        rows = list(ingot.open(target))
        is_old = rows == [{"a": 7}]
        if not is_old and [one["record"] if name == "y" else one for one in rows] != [
            b"a",
            b"b",
            b"c",
        ]:
            sys.exit(f"line {line}: {rows}")
        if not was_killed:
            break
        found["old" if is_old else "new"] += 1
        convert()
        if len(ingot.open(target)) != 3 or sorted(os.listdir(folder)) != ["x.ingot", name]:  # noqa: PTH208
            sys.exit(f"line {line}: {sorted(folder.iterdir())}")
    sys.stdout.write(f"{line} {found['old']} {found['new']}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
