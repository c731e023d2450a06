"""Bags among threads and processes, and what is left of those that were killed."""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import bagz as real
import pytest

import ingot
from ingot.compat import bagz
from ingot.formats.bag import BagFile, BagReader, BagWriter
from tests.support import FAULTS

RECORDS = [b"%d " % k * (k % 200) for k in range(2000)]


@pytest.fixture(params=["x.bag", "x.bagz"])
def path(request, tmp_path):
    with BagWriter(tmp_path / request.param, level=3 if request.param == "x.bagz" else None) as one:
        one.extend(RECORDS)
    return tmp_path / request.param


def test_threads_share_a_reader(path):
    reader = bagz.Reader(path)

    def work(seed):
        rng = random.Random(seed)
        for _ in range(30):
            indices = rng.choices(range(len(RECORDS)), k=64)
            assert reader.read_indices(indices) == [RECORDS[k] for k in indices]
            assert reader[indices[0]] == RECORDS[indices[0]]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))


def test_threads_share_a_writer(tmp_path):
    with bagz.Writer(tmp_path / "x.bagz") as writer:
        threads = [
            threading.Thread(target=lambda k=k: [writer.write(b"%d" % k * 50) for _ in range(500)])
            for k in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = bagz.Reader(tmp_path / "x.bagz").read()
    assert sorted(found) == sorted(b"%d" % k * 50 for k in range(4) for _ in range(500))


def test_a_forked_process_reads_on(path):
    reader = bagz.Reader(path)
    stream = iter(reader)
    first = [next(stream) for _ in range(10)]
    child = os.fork()
    if child == 0:
        good = first + list(stream) == RECORDS and reader.read_indices([5, 3]) == [
            RECORDS[5],
            RECORDS[3],
        ]
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert first + list(stream) == RECORDS


def test_the_child_of_a_fork_leaves_the_writer_of_its_parent_alone(tmp_path):
    for limits in (None, tmp_path / "limits.x.bag"):
        writer = BagWriter(tmp_path / "x.bag", limits)
        writer.append(b"parent")
        child = os.fork()
        if child == 0:
            try:
                writer.append(b"child")
                writer.close()
            except ValueError:
                writer.abandon()
                del writer
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        writer.close()
        assert list(ingot.open(tmp_path / "x.bag")) == [b"parent"]


def test_an_iterator_may_be_alive_when_the_interpreter_ends(path):
    code = (
        "import sys; from ingot.compat import bagz; r = bagz.Reader(sys.argv[1])\n"
        "it, other = iter(r), iter(r[::-1]); next(it); print(len(list(other)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, path], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "2000", "")


def kill_at_a_random_moment(path, limits, rng):
    """Start a writer, kill it, and return how many records it had told to be flushed."""
    command = [sys.executable, "-S", str(FAULTS / "write_bag_until_killed.py"), path, limits]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [*map(str, command), str(rng.randrange(1, 300))], stdout=subprocess.PIPE, env=environment
    ) as writer:
        first = writer.stdout.readline()
        told = b"".join(itertools.islice(writer.stdout, rng.randrange(20)))
        writer.send_signal(signal.SIGKILL)
        told = first + told + writer.stdout.read()
    return int(told[: told.rindex(b"\n")].split(b"\n")[-1])


def test_a_killed_writer_leaves_what_it_has_flushed(tmp_path):
    rng, path, limits = random.Random(3), tmp_path / "x.bag", tmp_path / "limits.x.bag"
    options = real.Reader.Options(limits_placement=real.LimitsPlacement.SEPARATE)
    rows = 0
    for _ in range(12):
        flushed = kill_at_a_random_moment(path, limits, rng)
        assert flushed >= rows
        found = list(BagReader([BagFile(str(path), str(limits))]))
        assert len(found) >= flushed
        assert found == [b"%d:" % k + b"x" * (k * 37 % 3000) for k in range(len(found))]
        rows = len(found)
    assert len(real.Reader(path, options)) == rows
    with BagWriter(path, limits, mode="append") as writer:
        assert writer.append(b"last") == rows
    assert ingot.open(path)[-1] == b"last"
    assert path.stat().st_size + limits.stat().st_size == writer.size


def test_a_killed_writer_of_a_tail_bag_leaves_the_old_one_and_a_pair(tmp_path):
    path = tmp_path / "x.bag"
    with BagWriter(path) as writer:
        writer.append(b"old")
    code = (
        "import os, sys; from ingot.formats.bag import BagWriter; w = BagWriter(sys.argv[1])\n"
        "w.extend([b'%d' % k for k in range(20000)]); w.flush(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, path], check=False)
    assert list(ingot.open(path)) == [b"old"]
    pair = BagReader([BagFile(f"{path}.part", f"{path}.spool")])
    assert list(pair) == [b"%d" % k for k in range(20_000)]
    with BagWriter(path) as writer:
        writer.append(b"new")
    assert list(ingot.open(path)) == [b"new"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.bag"]


def test_an_old_bag_is_appended_to_and_a_torn_pair_is_cut(tmp_path):
    path, limits = tmp_path / "x.bag", tmp_path / "x.idx"
    with BagWriter(path, limits, mode="create") as writer:
        writer.extend([b"one", b"two"])
    with pytest.raises(FileExistsError):
        BagWriter(path, limits, mode="create")
    path.write_bytes(path.read_bytes() + b"torn")
    limits.write_bytes(limits.read_bytes() + b"\x09\x00")
    with BagWriter(path, limits, mode="append") as writer:
        assert len(writer) == 2
        with pytest.raises(ingot.errors.StorageError, match="another writer"):
            BagWriter(path, limits, mode="append")
        writer.append(b"three")
    assert list(ingot.open(path)) == [b"one", b"two", b"three"]
    path.write_bytes(b"onetw")
    with pytest.raises(ingot.errors.CorruptFileError, match="record 2"):
        BagWriter(path, limits, mode="append")
    assert path.read_bytes() == b"onetw"
    with pytest.raises(ValueError, match="cannot be appended to"):
        BagWriter(path, mode="append")


@pytest.mark.parametrize("level", ["None", "0"])
def test_memory_does_not_grow_with_the_number_of_records(tmp_path, level):
    code = (
        "import sys; from itertools import repeat; from resource import getrusage\n"
        "from ingot.formats.bag import BagWriter\n"
        "with BagWriter(sys.argv[1], level=eval(sys.argv[2])) as w:\n"
        "    w.extend(repeat(b'', 100_000)); before = getrusage(0).ru_maxrss\n"
        "    w.extend(repeat(b'', 4_000_000)); print(getrusage(0).ru_maxrss - before)\n"
    )
    path = tmp_path / "x.bag"
    ended = subprocess.run(
        [sys.executable, "-c", code, path, level], check=True, capture_output=True, text=True
    )
    assert int(ended.stdout) < 8 << 10
    assert path.stat().st_size == 8 * 4_100_000
    assert len(ingot.open(path)) == 4_100_000
