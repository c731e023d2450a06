import itertools
import os
import random
import signal
import subprocess
import sys

import pytest

import ingot
from tests.support import FAULTS

KILLS = 200


def record(k):
    return b"%d:" % k + b"x" * (k * 37 % 3000)


def kill_at_a_random_moment(path, rng, *, sync):
    """Start a writer, kill it, and return how many rows it reported as committed."""
    command = [sys.executable, "-S", str(FAULTS / "append_until_killed.py"), str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    writer = subprocess.Popen(
        [*command, str(rng.randrange(1, 1000)), sync],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    with writer:
        first = writer.stdout.readline()
        assert first, writer.stderr.read().decode()
        told = b"".join(itertools.islice(writer.stdout, rng.randrange(30)))
        writer.send_signal(signal.SIGKILL)
        told = first + told + writer.stdout.read()
        assert writer.stderr.read() == b""
    assert writer.returncode == -signal.SIGKILL
    return int(told[: told.rindex(b"\n")].split(b"\n")[-1])


def check_prefix(path, committed):
    """Check that every row that was committed is there, and return how many are."""
    with ingot.open(path, partial=True) as reader:
        rows = len(reader)
        assert rows >= committed
        assert list(reader) == [record(k) for k in range(rows)]
    return rows


@pytest.mark.parametrize("kills", [20, pytest.param(KILLS, marks=pytest.mark.soak)])
@pytest.mark.parametrize("sync", ["sync", "none"])
def test_nothing_committed_is_lost_when_a_writer_is_killed(tmp_path, sync, kills):
    rng = random.Random(9)
    path, rows = tmp_path / "0.ingot", 0
    for kill in range(kills // 2):
        if rng.random() < 0.3 or rows > 10_000:
            path, rows = tmp_path / f"{kill}.ingot", 0
        committed = kill_at_a_random_moment(path, rng, sync=sync)
        assert committed >= rows
        rows = check_prefix(path, committed)
        if rng.random() < 0.5:
            recovery = ingot.recover(path, sync=False)
            assert recovery.rows >= rows
            assert recovery.damaged == []
            rows = recovery.rows
            with ingot.open(path) as reader:
                assert len(reader) == rows
                assert reader.verify().ok
    with ingot.Writer(path, append=True) as writer:
        rows = len(writer)
        assert writer.append(record(rows)) == rows
    with ingot.open(path) as reader:
        assert list(reader) == [record(k) for k in range(rows + 1)]


def run_until_killed(strace, path, call, number):
    """Have a writer killed at its `number`-th system call of a kind; return what it reported."""
    tracer = [strace, "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}"]
    inject = ["-e", f"inject={call}:signal=KILL:when={number}"]
    program = [sys.executable, str(FAULTS / "append_some.py"), str(path)]
    outcome = subprocess.run([*tracer, *inject, *program], check=False, capture_output=True)
    assert outcome.returncode in {0, -signal.SIGKILL}, outcome.stderr
    return outcome.returncode, outcome.stdout.split()


@pytest.mark.parametrize("call", ["pwrite64", "fsync", "fdatasync", "ftruncate"])
@pytest.mark.parametrize("begin", ["missing", "closed", "torn"])
def test_a_kill_at_any_system_call_loses_nothing_committed(path, strace, begin, call):
    before = 0 if begin == "missing" else 5
    for number in itertools.count(1):
        path.unlink(missing_ok=True)
        if begin != "missing":
            writer = ingot.Writer(path, sync=False)
            writer.extend(record(k) for k in range(5))
            writer.flush()
            (writer.close if begin == "closed" else writer.abandon)()
        if begin == "torn":
            with path.open("ab") as file:
                file.write(b"torn")
        status, told = run_until_killed(strace, path, call, number)
        if status == 0:
            assert told[-1] == b"closed"
            break
        committed = max([before, *(int(rows) for rows in told if rows != b"closed")])
        if path.stat().st_size == 0:
            assert committed == 0
            continue
        rows = check_prefix(path, committed)
        assert ingot.recover(path, sync=False).rows >= rows
        with ingot.open(path) as reader:
            assert list(reader) == [record(k) for k in range(len(reader))]
            assert reader.verify().ok
    with ingot.open(path) as reader:
        assert list(reader) == [record(k) for k in range(before + 12)]
