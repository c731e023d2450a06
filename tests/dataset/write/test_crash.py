"""Data sets whose writers and builders are killed, or run out of room."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ingot
from ingot.dataset.write.journal import Journal
from tests.support import FAULTS


def start(script, *arguments, **options):
    return subprocess.Popen([sys.executable, str(FAULTS / script), *map(str, arguments)], **options)


@pytest.mark.parametrize(
    "how", ["kill", *(pytest.param(one, marks=pytest.mark.soak) for one in ("interrupt", "error"))]
)
@pytest.mark.parametrize(
    "scenario",
    [
        *("append", "overwrite", "first", "last", "commit", "build"),
        *("rebuild", "rebuildother", "insist", "insistappending", "compact"),
    ],
)
def test_a_stop_at_any_step_leaves_the_old_data_set_or_the_new(tmp_path, run_fault, scenario, how):
    outcome = run_fault("kill_each_step.py", scenario, tmp_path, "call", how, timeout=120)
    assert outcome.returncode == 0, outcome.stderr
    assert int(outcome.stdout) > 10


STOPS = [
    *(("line", call, "directory", 13) for call in ("append", "columns", "list", "flush", "close")),
    *(("line", call, "file", 3) for call in ("append", "columns", "list", "flush", "close")),
    ("line", "close", "part", 13),
    ("EMFILE", "flush", "directory", 1000),
    ("SIGINT", "close", "directory", 1000),
    *(
        pytest.param((how, call, target, 1), marks=pytest.mark.soak)
        for how in ("line", "EMFILE", "EIO", "ENOSPC", "SIGINT")
        for target in ("directory", "file", "records")
        for call in ("append", "columns", "list", "flush", "close")
        if target != "records" or (call != "columns" and how != "line")
    ),
    *(
        pytest.param((how, "close", "part", 1), marks=pytest.mark.soak)
        for how in ("line", "EMFILE", "EIO", "ENOSPC", "SIGINT")
    ),
]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: "-".join(map(str, stop)))
def test_a_call_that_was_stopped_can_be_repeated_or_the_writer_has_failed(
    tmp_path, run_fault, request, stop
):
    how, call, target, every = stop
    if how != "line":
        request.getfixturevalue("strace")
    arguments = (tmp_path, target, call, how, every)
    outcome = run_fault("stop_writer_each_step.py", *arguments, timeout=1000)
    assert outcome.returncode == 0, outcome.stderr
    stopped, failed = map(int, outcome.stdout.split())
    assert stopped >= failed
    assert stopped > 0 or call in ("append", "columns", "list")


@pytest.mark.parametrize("how", ["commit", "probe"])
def test_a_child_forked_under_a_lock_does_not_keep_it(tmp_path, run_fault, how):
    outcome = run_fault("fork_while_locked.py", tmp_path, how)
    assert outcome.returncode == 0, outcome.stderr


HOLD = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from ingot.dataset import atomic\n"
    "with atomic.locked(Path(sys.argv[1])):\n"
    "    print('locked', flush=True)\n"
    "    sys.stdin.read()\n"
)
APPEND = (
    "import ingot, sys\n"
    "with ingot.DatasetWriter(sys.argv[1], {'a': 'int'}, append=True) as writer:\n"
    "    writer.append({'a': 1})\n"
)


@pytest.mark.parametrize("how", ["release", "kill", "interrupt"])
def test_waiting_for_a_lock_names_its_holder_and_can_be_interrupted(tmp_path, how):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    owner = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], **pipes)
    assert owner.stdout.readline() == "locked\n"
    command = [sys.executable, "-c", APPEND, str(tmp_path)]
    waiting = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    line = waiting.stderr.readline()
    assert f"{tmp_path}: waiting for process {owner.pid}, which is changing it" in line
    if how == "interrupt":
        waiting.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in waiting.communicate()[1]
    if how == "kill":
        owner.kill()
    owner.communicate("")
    waiting.communicate() if how != "interrupt" else None
    assert waiting.returncode == (-signal.SIGINT if how == "interrupt" else 0)


def check_rows(path, told):
    """Check that all rows that each writer reported are there, once and in order."""
    with ingot.open(path) as ds:
        writers, numbers = ds.column("writer"), ds.column("k")
    for writer, count in told.items():
        mine = numbers[writers == writer].tolist()
        assert mine == list(range(len(mine)))
        assert len(mine) >= count


def test_writers_that_append_at_the_same_time_and_are_killed_lose_nothing(tmp_path):
    rng, path, told = random.Random(3), tmp_path / "x", {}
    writers, numbers = {}, iter(range(1, 100))
    for _ in range(8):
        while len(writers) < 3:
            number = next(numbers)
            writers[number] = start("append_rows.py", path, number, stdout=subprocess.PIPE)
        number = rng.choice(list(writers))
        lines = [writers[number].stdout.readline() for _ in range(rng.randrange(1, 6))]
        if rng.random() < 0.8:
            writer = writers.pop(number)
            writer.kill()
            lines += writer.stdout.read().splitlines(keepends=True)
            writer.wait()
            writer.stdout.close()
        told[number] = int([line for line in lines if line.endswith(b"\n")][-1])
        check_rows(path, told)
    for writer in writers.values():
        writer.kill()
        writer.communicate()
    check_rows(path, told)
    ingot.DatasetWriter(path, {"writer": "int", "k": "int", "pad": "bytes"}, append=True).abandon()
    manifest = json.loads((path / "dataset.json").read_text())
    listed = {shard["name"] for shard in manifest["shards"]} | {"dataset.json"}
    assert {entry.name for entry in path.iterdir()} == listed


def workers_of(process):
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    commands = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
    return [child for child, command in commands.items() if b"spawn_main" in command]


def is_alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_build_resumes_after_a_kill_of_any_process(tmp_path):
    rng, path, log = random.Random(5), tmp_path / "x", tmp_path / "x.log"
    done, kills = set(), 0
    while kills < 6:
        log.write_bytes(b"")
        builder = start("build_rows.py", path, stderr=subprocess.PIPE)
        wanted = rng.randrange(3, 30)
        while builder.poll() is None and log.read_bytes().count(b"\n") < wanted:
            time.sleep(0.002)
        workers = workers_of(builder) if builder.poll() is None else []
        if workers:
            victim = rng.choice([builder.pid, builder.pid, *workers])
            os.kill(victim, signal.SIGKILL)
            kills += 1
        stderr = builder.communicate(timeout=200)[1].decode()
        called = {int(line) for line in log.read_text().splitlines()}
        assert not {k // 4 for k in called} & done
        if builder.returncode == 0:
            break
        if builder.returncode == 1:
            assert "WorkerError" in stderr, stderr
        while any(map(is_alive, workers)):  # The timeout of the test tells that they stay.
            time.sleep(0.01)
        assert not (path / "dataset.json").exists()
        if (path / "build.journal").exists():
            with Journal(path) as journal:
                assert done <= set(journal.chunks)
                done = set(journal.chunks)
    assert kills > 3
    assert builder.returncode == 0 or start("build_rows.py", path).wait() == 0
    assert ingot.open(path).column("a").tolist() == list(range(120))
    ingot.DatasetWriter(path, {"a": "int"}, append=True).abandon()
    manifest = json.loads((path / "dataset.json").read_text())
    assert {entry.name for entry in path.iterdir()} == {
        shard["name"] for shard in manifest["shards"]
    } | {"dataset.json"}


def test_an_interrupt_ends_a_build_at_once_and_keeps_what_is_finished(tmp_path):
    path, log = tmp_path / "x", tmp_path / "x.log"
    log.touch()
    builder = start("build_rows.py", path, stderr=subprocess.PIPE, start_new_session=True)
    while log.read_bytes().count(b"\n") < 20:
        time.sleep(0.01)
    workers = workers_of(builder)
    os.killpg(builder.pid, signal.SIGINT)
    stderr = builder.communicate(timeout=200)[1].decode()
    assert builder.returncode == -signal.SIGINT
    assert stderr.count("Traceback") == 1, stderr
    assert "the same call resumes from there" in stderr
    assert not any(map(is_alive, workers))
    with Journal(path) as journal:
        shards = {shard.name for chunk in journal.chunks.values() for shard in chunk.shards}
    assert shards
    assert {entry.name for entry in path.iterdir()} == shards | {"build.journal"}


def test_a_build_that_ignores_interrupts_continues(tmp_path):
    path, log = tmp_path / "x", tmp_path / "x.log"
    log.touch()
    builder = start("build_rows.py", path, "ignoring", start_new_session=True)
    while log.read_bytes().count(b"\n") < 20:
        time.sleep(0.01)
    os.killpg(builder.pid, signal.SIGINT)
    assert builder.wait(timeout=200) == 0
    assert ingot.open(path).column("a").tolist() == list(range(120))


def test_where_directories_cannot_be_locked_a_file_is(tmp_path, strace):
    path = tmp_path / "x"
    path.mkdir()
    under = [strace, "-f", "-qq", "-o", os.devnull, "-P", str(path), "-e", "trace=flock"]
    under += ["-e", "inject=flock:error=EBADF"]
    code = (
        "import ingot, sys\n"
        "with ingot.DatasetWriter(sys.argv[1], {'a': 'int'}, append=True) as w:\n"
        "    w.append({'a': 1})\n"
    )
    writers = [subprocess.Popen([*under, sys.executable, "-c", code, str(path)]) for _ in range(3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert ingot.open(path).column("a").tolist() == [1, 1, 1]
    assert len(list(path.glob("*.ingot"))) == 3
    assert (path / ".lock").exists()


def test_a_full_disk_leaves_the_data_set_as_it_was(tmp_path, run_fault):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small file system needs root and unshare")
    script = 'mount -t tmpfs -o size=1m tmpfs "$0" || exit 77\nexec "$@"'
    under = ["unshare", "--mount", "sh", "-c", script, str(tmp_path)]
    outcome = run_fault("fill_disk_with_rows.py", tmp_path, under=under)
    if outcome.returncode == 77 or "unshare" in outcome.stderr:
        pytest.skip("this system does not let root mount")
    assert outcome.returncode == 0, outcome.stderr
