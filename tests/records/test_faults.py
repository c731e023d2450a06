import errno
import json
import os
import re
import shutil

import pytest

import ingot

WAYS = ["mmap", "uring", "pread"]


def numbered(make):
    """Make a file of 100 records of known size; return it with the offset of the first."""
    path = make([b"%d." % k * 500 for k in range(100)], compression=None)
    return path, path.read_bytes().index(b"0." * 500)


def inject(strace, path, fault, log=os.devnull):
    """Return the command that runs a program with a fault in its system calls on `path`."""
    call = fault.split(":")[0]
    tracer = [strace, "-f", "-qq", "-o", str(log), "-P", str(path)]
    return [*tracer, "-e", f"trace={call}", "-e", f"inject={fault}"]


def test_a_file_that_may_not_grow_keeps_its_commits(path, run_fault):
    outcome = run_fault("fill_disk.py", path, "file")
    assert outcome.returncode == 0, outcome.stderr


def test_a_full_disk_keeps_its_commits(tmp_path, run_fault):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small file system needs root and unshare")
    disk = tmp_path / "disk"
    disk.mkdir()
    script = 'mount -t tmpfs -o size=1m tmpfs "$0" || exit 77\n'
    script += 'head -c 100000 /dev/zero > "$0/x.ingot.ballast"\nexec "$@"'
    under = ["unshare", "--mount", "sh", "-c", script, str(disk)]
    outcome = run_fault("fill_disk.py", disk / "x.ingot", "disk", under=under)
    if outcome.returncode == 77 or "unshare" in outcome.stderr:
        pytest.skip("this system does not let root mount")
    assert outcome.returncode == 0, outcome.stderr


def test_a_failed_sync_is_not_tried_again(path, run_fault, strace):
    log = path.with_suffix(".log")
    under = inject(strace, path, "fdatasync:error=EIO:when=1+", log)
    outcome = run_fault("sync_fails.py", path, under=under)
    assert outcome.returncode == 0, outcome.stderr
    assert log.read_text().count("fdatasync(") == 1


def test_a_failed_write_is_reported_and_commits_stay(path, run_fault, strace):
    under = inject(strace, path, "pwrite64:error=EIO:when=4+")
    outcome = run_fault("append_some.py", path, under=under)
    assert outcome.returncode == 1
    assert "ingot.errors.StorageError" in outcome.stderr
    assert "write failed: Input/output error" in outcome.stderr
    told = int(outcome.stdout.split()[-1])
    noted = int(re.search(r"left unfinished with (\d+) committed records", outcome.stderr)[1])
    with ingot.open(path, partial=True) as reader:
        assert 4 <= told <= noted <= len(reader)
        assert reader.verify().ok


def test_interrupted_writes_and_reads_are_retried(path, run_fault, strace):
    log = path.with_suffix(".log")
    under = inject(strace, path, "pwrite64,pread64:error=EINTR:when=1+2", log)
    for _ in range(2):
        outcome = run_fault("append_some.py", path, under=under, env={"INGOT_IO": "pread"})
        assert outcome.returncode == 0, outcome.stderr
    assert len(re.findall(r"pwrite64.* EINTR .*\(INJECTED\)", log.read_text())) > 3
    assert re.search(r"pread64.* EINTR .*\(INJECTED\)", log.read_text())
    with ingot.open(path) as reader:
        assert len(reader) == 24
        assert reader.verify().ok


def test_a_failed_read_names_its_record_and_spares_the_others(make, run_fault, strace):
    path, first = numbered(make)
    under = inject(strace, path, "pread64:error=EIO:when=20")
    outcome = run_fault("read_each.py", path, under=under, env={"INGOT_IO": "pread"})
    assert outcome.returncode == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    assert (found["rows"], found["good"]) == (100, True)
    ((k, kind, record, offset, number, name, message),) = found["troubles"]
    assert (kind, record, number, name) == ("StorageError", k, errno.EIO, str(path))
    assert offset == first + sum(len(b"%d." % before * 500) for before in range(k))
    assert message.startswith(f"{path}: record {k}: offset {offset}: read failed: Input/output")


def test_a_read_that_returns_wrong_bytes_is_noticed(make, run_fault, strace):
    path, _ = numbered(make)
    under = inject(strace, path, "pread64:retval=10:when=20")
    outcome = run_fault("read_each.py", path, under=under, env={"INGOT_IO": "pread"})
    assert outcome.returncode == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    ((k, kind, record, *_),) = found["troubles"]
    assert (kind, record, found["good"]) == ("CorruptFileError", k, True)


def test_an_unreadable_file_is_not_reported_as_damaged(make, run_fault, strace):
    path, _ = numbered(make)
    under = inject(strace, path, "pread64:error=EIO")
    outcome = run_fault("read_each.py", path, under=under, env={"INGOT_IO": "pread"})
    assert outcome.returncode == 1
    assert "ingot.errors.StorageError" in outcome.stderr
    assert "Input/output error" in outcome.stderr


@pytest.mark.parametrize("refusal", ["EPERM", "ENOSYS", "ENOMEM"])
def test_without_io_uring_the_bytes_are_the_same(make, run_fault, strace, refusal):
    path = make([b"%d." % k * (k % 999) for k in range(3000)], compression=None)
    log = path.with_suffix(".log")
    under = [strace, "-f", "-qq", "-o", str(log), "-e", "trace=io_uring_setup"]
    under += ["-e", f"inject=io_uring_setup:error={refusal}"]
    refused = run_fault("digest.py", path, under=under, env={"INGOT_IO": "uring"})
    allowed = run_fault("digest.py", path, env={"INGOT_IO": "mmap"})
    assert refused.returncode == 0, refused.stderr
    assert refusal in log.read_text()
    assert refused.stdout == allowed.stdout
    assert len(refused.stdout) == 64


@pytest.mark.parametrize("way", WAYS)
def test_a_storm_of_signals_goes_unnoticed(path, run_fault, way):
    outcome = run_fault("storm.py", path, env={"INGOT_IO": way})
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "ok"


@pytest.mark.parametrize("work", ["verify", "iterate"])
@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_stops_native_work_and_leaves_the_reader_usable(path, run_fault, way, work):
    outcome = run_fault("interrupt.py", path, work, env={"INGOT_IO": way})
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "ok"


@pytest.mark.parametrize("work", ["open", "partial", "recover", "append"])
def test_an_interrupt_stops_the_search_for_the_last_commit(path, run_fault, work):
    outcome = run_fault("interrupt_search.py", path, work)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "ok"


@pytest.mark.parametrize("size", [300 << 30, 7 << 40])
def test_a_hole_is_not_searched_for_the_last_commit(path, size):
    writer = ingot.Writer(path, sync=False)
    writer.append(b"x")
    writer.flush()
    writer.abandon()
    os.truncate(path, size)
    assert list(ingot.open(path, partial=True)) == [b"x"]
    assert ingot.recover(path).rows == 1
    assert path.stat().st_size < 10_000


@pytest.mark.parametrize("kind", ["huge", "bomb"])
def test_a_hostile_length_raises_and_does_not_abort(path, run_fault, kind):
    calls = ["one", "batch", "read", "iterate"]
    outcome = run_fault("hostile.py", path, kind, *calls)
    assert outcome.returncode == 0, outcome.stderr
    error = {"huge": "MemoryError", "bomb": "FormatError"}[kind]
    assert outcome.stdout.split("\n")[:-1] == [f"{call}: {error}" for call in calls]


@pytest.mark.parametrize("kind", ["huge", "bomb"])
def test_a_hostile_length_does_not_abort_a_verification(path, run_fault, kind):
    outcome = run_fault("hostile.py", path, kind, "verify")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout in {"verify: not ok\n", "verify: MemoryError\n"}


def test_a_flood_of_opcodes_in_a_packed_tree_raises_and_does_not_abort(tmp_path, run_fault):
    outcome = run_fault("hostile_tree.py", tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    names = ["marks", "dicts", "tuples", "memos", "names", "entries"]
    assert outcome.stdout.split("\n")[:-1] == [f"{name}: CorruptFileError" for name in names]


@pytest.mark.parametrize("way", WAYS)
def test_forks_of_a_used_reader_read_the_same(path, run_fault, way):
    outcome = run_fault("fork_cycles.py", path, 200, env={"INGOT_IO": way})
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "0 failed"


def test_readers_work_under_every_start_method(path, run_fault):
    outcome = run_fault("start_methods.py", path)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "fork spawn forkserver "
