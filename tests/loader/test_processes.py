"""Batches that processes make are those that threads make, whatever dies."""

import contextlib
import gc
import json
import multiprocessing
import os
import select
import signal
import stat
import subprocess
import sys
import threading
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import ingot
from ingot.loader.state import differing
from tests.support import FAULTS

ROWS = 200


def heavy(row, rng):
    image = row["image"] + rng.integers(0, 100, dtype=np.uint8)
    return {"image": image, "label": row["label"], "name": f"row {row['label']}"}


def refuse_sevens(row):
    if row["label"] % 10 == 7:
        message = f"no {row['label']}"
        raise LookupError(message)
    return row["label"]


def die_once(mark, row):
    if row["label"] == 42:
        with contextlib.suppress(FileExistsError):
            Path(mark).touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
    return row["label"]


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes") / "rows"
    spec = {"image": "array(uint8,32,32,3)", "label": "int", "name": "utf8"}
    with ingot.DatasetWriter(folder, spec, sync=False) as writer:
        for k in range(ROWS):
            image = np.full((32, 32, 3), k, np.uint8)
            writer.append({"image": image, "label": k, "name": f"row {k}"})
    return ingot.open(folder)


def assert_same(left, right):
    left, right = list(left), list(right)
    assert len(left) == len(right) > 0
    assert [differing(*pair) for pair in zip(left, right, strict=True)] == [None] * len(left)


def children():
    return {one.pid for one in multiprocessing.active_children()}


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"drop_last": False, "shard": (1, 2)},
        {"collate": len},
    ],
    ids=["arrays", "second rank", "numbers"],
)
def test_processes_make_the_batches_of_threads(ds, processes, options):
    check_batches(ds, processes, options)


def check_batches(ds, processes, options):
    """Check that processes make the batches that threads make."""
    order = ds.shuffle(seed=3).map(heavy)
    with ingot.Loader(order, 32, processes=processes, **options) as loader:
        assert_same(loader, ingot.Loader(order, 32, workers=0, **options))
        assert_same(loader, ingot.Loader(order.repeat().skip(ROWS).take(ROWS), 32, **options))


def kind_of_process(_):
    return type(multiprocessing.current_process()).__name__


@pytest.mark.parametrize("context", ["spawn", get_context("spawn"), "fork"])
def test_processes_are_started_with_the_context_that_is_given(ds, context):
    with ingot.Loader(ds[:8].map(kind_of_process), 4, processes=1, mp_context=context) as loader:
        batches = list(loader)
    kind = "ForkProcess" if context == "fork" else "SpawnProcess"
    assert [one for kinds in batches for one in kinds] == [kind] * 8


def test_an_unknown_start_method_is_refused(ds):
    with pytest.raises(ValueError, match="threads"):
        ingot.Loader(ds, 4, processes=1, mp_context="threads")


def test_rows_as_stored_and_records_come_from_processes(ds, tmp_path):
    with ingot.Loader(ds.shuffle(seed=1), 25, processes=2) as loader:
        assert_same(loader, ingot.Loader(ds.shuffle(seed=1), 25))
    with ingot.Writer(tmp_path / "x.ingot", sync=False) as writer:
        writer.extend(os.urandom(k * 1000) for k in range(60))
    records = ingot.open(tmp_path / "x.ingot")
    with ingot.Loader(records, 20, processes=2) as loader:
        assert [one for batch in loader for one in batch] == list(records)


def test_arrays_from_processes_are_writable_and_stay_as_they_are(ds):
    with ingot.Loader(ds.map(heavy), 50, processes=2) as loader:
        kept = [batch["image"] for batch in loader]
        copies = [one.copy() for one in kept]
        kept[0][:] = 0
        list(loader)
    assert not kept[0].any()
    assert all((one == copy).all() for one, copy in zip(kept[1:], copies[1:], strict=True))


def test_memory_is_reused_but_never_while_it_is_referenced(ds):
    check_memory(ds, lambda image: image)


def check_memory(ds, view_of):
    """Check that memory is reused, but not that of a view that `view_of` returned."""
    order = ds.shuffle(seed=6).map(heavy).repeat()
    with ingot.Loader(order, 50, processes=2) as loader:
        expected = [loader.batch(step)["image"] for step in range(60)]
        places, kept = set(), {}
        for step, batch in enumerate(iter(loader)):
            image = batch.pop("image")
            places.add(image.ctypes.data)
            kept[step] = (image if step % 3 else view_of(image))[1:3, :, ::2]
            kept.pop(step - 7, None)
            for past, part in kept.items():
                np.testing.assert_array_equal(part, expected[past][1:3, :, ::2])
            if step == 59:
                break
    assert len(places) < 30
    for past, part in kept.items():
        np.testing.assert_array_equal(part, expected[past][1:3, :, ::2])


def test_a_batch_that_a_forked_child_looks_at_never_changes(ds):
    context = multiprocessing.get_context("fork")
    with ingot.Loader(ds.shuffle(seed=6).map(heavy).repeat(), 50, processes=1) as loader:
        batches = iter(loader)
        batch = next(batches)
        ours, theirs = context.Pipe()

        def look(image):
            theirs.recv()
            theirs.send_bytes(image.tobytes())

        child = context.Process(target=look, args=(batch["image"],))
        child.start()
        content = batch["image"].tobytes()
        del batch
        for _ in range(30):
            next(batches)
        ours.send("look")
        assert ours.recv_bytes() == content
        child.join()


def test_many_batches_can_be_kept_with_few_descriptors(ds):
    code = (
        "import resource, ingot, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))\n"
        "ds = ingot.open(sys.argv[1])\n"
        "with ingot.Loader(ds.repeat(150), 50, processes=2) as loader:\n"
        "    kept = list(loader)\n"
        "print(sum(int(batch['image'][:, 0, 0, 0].sum()) for batch in kept))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, ds.path], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) == 150 * sum(range(ROWS))


def test_batches_come_through_the_pipe_when_descriptors_run_out(ds):
    code = (
        "import os, resource, ingot, sys\n"
        "ds = ingot.open(sys.argv[1])\n"
        "with ingot.Loader(ds.repeat(10), 50, processes=2) as loader:\n"
        "    loader.start()\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
        "    for process in multiprocessing.active_children():\n"
        "        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (6, 6))\n"
        "    kept = list(loader)\n"
        "print(sum(int(batch['image'][:, 0, 0, 0].sum()) for batch in kept))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import multiprocessing\n{code}", ds.path],
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout) == 10 * sum(range(ROWS))


def test_no_process_is_left_when_multiprocessing_ends_its_own(ds):
    code = (
        "import multiprocessing, ingot, sys\n"
        "from multiprocessing.util import Finalize\n"
        "tell = lambda: print(len(multiprocessing.active_children()))\n"
        "Finalize(None, tell, exitpriority=0)\n"
        "loader = ingot.Loader(ingot.open(sys.argv[1]).repeat(), 5, processes=2)\n"
        "next(iter(loader))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, ds.path], check=True, capture_output=True, text=True
    )
    assert done.stdout == "0\n"


def test_state_seek_and_skip_hold_for_processes(ds):
    order = ds.shuffle(seed=5).map(heavy)
    with ingot.Loader(order, 16, processes=2) as loader:
        straight = [batch["label"].tolist() for batch in loader]
        loader.seek(0)
        batches = iter(loader)
        next(batches), next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        loader.seek(7)
        assert next(iter(loader))["label"].tolist() == straight[7]
        loader.load_state_dict(state)
        loader.skip(3, 5)
        assert [one["label"].tolist() for one in loader] == [straight[2], *straight[5:]]
        assert loader.batch(4)["label"].tolist() == straight[4]
        assert loader.stats().transform_s > 0


def alone(*arguments):
    """Return a command that reads with processes where nobody else makes names.

    Its last line lists the shared memory and the semaphores that are left.
    """
    script = 'mount -t tmpfs none /dev/shm && { "$@"; ls -A /dev/shm | wc -l; }'
    program = [sys.executable, FAULTS / "load_in_processes.py", *arguments]
    return ["unshare", "--mount", "sh", "-c", script, "sh", *program]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_start_in_every_way_and_leave_nothing_behind(ds, method):
    done = subprocess.run(
        alone(ds.path, method, "whole"), check=True, capture_output=True, text=True
    )
    labels, left = done.stdout.splitlines()
    expected = [batch["label"].tolist() for batch in ingot.Loader(ds.shuffle(seed=2), 10)]
    assert json.loads(labels) == expected
    assert (left, done.stderr) == ("0", "")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_end_when_the_process_of_the_loader_is_killed(ds, method):
    command = alone(ds.path, method, "wait")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as shell:
        parent, *workers = json.loads(shell.stdout.readline())
        assert len(workers) == 2
        handles = [os.pidfd_open(pid) for pid in workers]
        os.kill(parent, signal.SIGKILL)
        assert shell.stdout.read() == "0\n"
    for handle in handles:
        select.select([handle], [], [])  # It is readable once the process has ended.
        os.close(handle)


def test_a_process_that_is_killed_is_replaced_and_the_batches_stay(ds):
    order = ds.shuffle(seed=4).map(heavy).repeat()
    straight = ingot.Loader(order.take(3000), 10, workers=0)
    others = children()
    with ingot.Loader(order.take(3000), 10, processes=2) as loader:
        batches = iter(loader)
        found = [next(batches)]
        victims = set()
        for k, batch in enumerate(batches):
            found.append(batch)
            if k % 40 == 7:
                victim = sorted(children() - others)[k % 2]
                victims.add(victim)
                os.kill(victim, signal.SIGKILL)
        assert len(victims) > 5
        assert len(children() - others) <= 2
    assert_same(found, straight)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_end_of_a_process_is_noticed_without_waiting(ds, tmp_path, monkeypatch, method):
    """Its pipe tells, at once: this test would last for hours if somebody had to look."""
    monkeypatch.setattr("ingot.loader.processes._PAUSE_S", 10_000.0)
    monkeypatch.setattr("multiprocessing.get_context", partial(get_context, method))
    order = ds.map(partial(die_once, str(tmp_path / "died")))
    with ingot.Loader(order, 10, processes=2) as loader:
        assert [batch.tolist() for batch in loader] == np.arange(ROWS).reshape(-1, 10).tolist()
    assert (tmp_path / "died").exists()


def test_a_step_that_kills_its_process_again_and_again_is_an_error(ds):
    def die(row):
        if row["label"] == 42:
            os.kill(os.getpid(), signal.SIGKILL)
        return row["label"]

    with ingot.Loader(ds.map(die), 10, processes=2) as loader:
        batches = iter(loader)
        assert [len(next(batches)) for _ in range(4)] == [10] * 4
        with pytest.raises(ingot.WorkerError, match=r"step 4: .* died by SIGKILL, 3 times") as info:
            next(batches)
        assert info.value.step == 4
        loader.seek(5)
        assert next(iter(loader)).tolist() == list(range(50, 60))


def test_an_error_of_a_process_has_its_cause_and_its_traceback(ds):
    with ingot.Loader(ds.map(refuse_sevens), 10, processes=2) as loader:
        with pytest.raises(ingot.WorkerError, match=r"step 0, position 7 \(row 7 of ") as info:
            next(iter(loader))
        assert isinstance(info.value.__cause__, LookupError)
        assert "in refuse_sevens" in info.value.__notes__[0]


def test_samples_are_replaced_in_processes_as_in_threads(ds):
    order = ds.shuffle(seed=9).map(refuse_sevens)
    options = {"batch_size": 20, "on_error": "substitute"}
    with ingot.Loader(order, processes=2, **options) as loader:
        plain = ingot.Loader(order, workers=0, **options)
        assert_same(loader, plain)
        assert loader.errors == plain.errors
        assert len(loader.errors) == 20


def test_a_batch_that_cannot_be_sent_is_an_error_that_says_so(ds):
    with (
        ingot.Loader(ds, 10, processes=1, collate=lambda rows: lambda: rows) as loader,
        pytest.raises(ingot.WorkerError, match="step 0: the batch cannot be sent"),
    ):
        next(iter(loader))


def fail_with(kind):
    raise kind("not here")


class Unwelcome:
    """A value that cannot be unpickled."""

    def __init__(self, kind):
        self.kind = kind

    def __reduce__(self):
        return fail_with, (self.kind,)


@pytest.mark.parametrize("kind", [OSError, EOFError, KeyError])
def test_a_batch_that_cannot_be_unpickled_is_an_error_that_says_so(ds, kind):
    order = ds.map(lambda row: [row["label"], Unwelcome(kind)])
    with (
        ingot.Loader(order, 10, processes=2) as loader,
        pytest.raises(ingot.WorkerError, match="step 0: the batch cannot be sent") as caught,
    ):
        next(iter(loader))
    assert isinstance(caught.value.__cause__, kind)


class Reluctant:
    """A value that the system refuses to pickle."""

    def __reduce__(self):
        raise OSError("not there")


def test_an_os_error_while_pickling_a_batch_is_not_taken_for_a_dead_worker(ds):
    order = ds.map(lambda _: [Reluctant()])
    with (
        ingot.Loader(order, 10, processes=1) as loader,
        pytest.raises(ingot.WorkerError, match=r"cannot be sent.*not there"),
    ):
        next(iter(loader))


def linger(_):
    for one in range(3, 256):  # The pipe to the loader is a socket.
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(one).st_mode):
                os.close(one)
    threading.Event().wait()


def test_a_process_that_does_not_end_is_ended(ds, monkeypatch):
    monkeypatch.setattr("ingot.loader.processes._PATIENCE_S", 0.1)
    with (
        ingot.Loader(ds.map(linger), 10, processes=1) as loader,
        pytest.raises(ingot.WorkerError, match=r"died by SIGKILL"),
    ):
        next(iter(loader))


def test_functions_must_be_picklable_for_processes_that_are_not_forked(ds):
    done = subprocess.run(
        [sys.executable, FAULTS / "load_in_processes.py", ds.path, "spawn", "lambda"],
        check=False,
        capture_output=True,
        text=True,
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("TypeError: a function or a source cannot be sent to a process")
    assert last.endswith("or pass workers= for threads")


def test_processes_end_with_the_loader(ds):
    others = children()
    loader = ingot.Loader(ds.map(heavy), 10, processes=2)
    assert children() <= others
    next(iter(loader))
    assert len(children() - others) == 2
    loader.close()
    assert children() <= others
    loader.close()
    loader = ingot.Loader(ds.map(heavy), 10, processes=2)
    next(iter(loader))
    assert len(children() - others) == 2
    del loader
    gc.collect()
    assert children() <= others


def test_a_child_of_a_fork_has_processes_of_its_own(ds):
    with ingot.Loader(ds.shuffle(seed=2), 10, processes=1) as loader:
        expected = [batch["label"].tolist() for batch in loader]
        ours, theirs = multiprocessing.get_context("fork").Pipe()

        def read():
            with loader:
                theirs.send([batch["label"].tolist() for batch in loader])

        child = multiprocessing.get_context("fork").Process(target=read)
        child.start()
        assert (
            ours.recv()
            == [
                batch["label"].tolist() for batch in ingot.Loader(ds.shuffle(seed=2).repeat(2), 10)
            ][20:]
        )
        child.join()
        assert child.exitcode == 0
        loader.seek(0)
        assert [batch["label"].tolist() for batch in loader] == expected


def test_threads_and_processes_are_not_asked_for_together(ds):
    with pytest.raises(ValueError, match=r"workers=2 .* processes=3 .* pass one of them"):
        ingot.Loader(ds, 10, workers=2, processes=3)
    with pytest.raises(ValueError, match="processes"):
        ingot.Loader(ds, 10, processes=-1)


def test_no_other_process_has_the_pipes_of_a_worker(ds):
    """So the death of a worker is noticed, whoever was forked meanwhile."""
    context = multiprocessing.get_context("fork")
    before = sockets_of(os.getpid())
    others = children()
    with ingot.Loader(ds, 10, processes=3) as loader:
        next(iter(loader))
        ours = sockets_of(os.getpid()) - before
        workers = children() - others
        bystander = context.Process(target=signal.pause)
        bystander.start()
        assert len(ours) == len(workers) == 3
        for pid in (*workers, bystander.pid):
            while sockets_of(pid) & ours:  # A child closes them before it does anything else.
                os.sched_yield()
        bystander.kill()
        bystander.join()


def test_a_process_that_dies_between_batches_is_replaced_once(ds):
    order = ds.shuffle(seed=4).map(heavy).repeat()
    others = children()
    with ingot.Loader(order, 5, processes=2, prefetch=1) as loader:
        expected = [loader.batch(step)["label"].tolist() for step in range(60)]
        found = []
        for batch in loader:
            found.append(batch["label"].tolist())
            if len(found) == 60:
                break
            for pid in children() - others:
                with contextlib.suppress(ProcessLookupError):  # A thread may have waited for it.
                    os.kill(pid, signal.SIGKILL)
        assert found == expected
        assert len(children() - others) <= 2


def sockets_of(pid):
    found = set()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(str(one.readlink()))
    return {one for one in found if one.startswith("socket:")}


def padded(row, rng):
    del row
    return np.ones(int(10 ** rng.uniform(5, 6)), np.uint8)


def mapped_files():
    text = Path("/proc/self/maps").read_text()
    return {line.split(maxsplit=5)[4] for line in text.splitlines() if "ingot-batch" in line}


def test_batches_of_many_sizes_do_not_pile_up_memory(ds):
    before = mapped_files()
    with ingot.Loader(ds.map(padded).repeat(), 1, processes=2) as loader:
        most = 0
        for step, _ in zip(range(150), loader, strict=False):
            most = max(most, len(mapped_files() - before)) if step % 10 == 0 else most
        assert 0 < most <= 40
        held = [batch for _, batch in zip(range(60), loader, strict=False)]
        assert len(mapped_files() - before) >= 50
        del held
        for _ in zip(range(60), loader, strict=False):
            pass
        assert len(mapped_files() - before) <= 40


def message_of(pipe):
    try:
        ingot.Loader(range(10), 5, processes=1)
    except RuntimeError as error:
        pipe.send(str(error))


def test_a_worker_of_another_loader_has_threads_only():
    ours, theirs = multiprocessing.Pipe()
    process = get_context("fork").Process(target=message_of, args=(theirs,), daemon=True)
    process.start()
    assert "pass workers= for threads" in ours.recv()
    process.join()


def test_a_worker_that_cannot_open_the_rows_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr("multiprocessing.get_context", partial(get_context, "spawn"))
    opened = []
    for count in (10, 11):
        with ingot.DatasetWriter(tmp_path / "x", {"n": "int"}, overwrite=True) as writer:
            writer.extend({"n": n} for n in range(count))
        opened.append(ingot.open(tmp_path / "x"))
    with (
        ingot.Loader(opened[0], 5, processes=1) as loader,
        pytest.raises(ingot.WorkerError, match=r"cannot unpickle its work.*replaced since"),
    ):
        next(iter(loader))


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.timeout(120)
def test_a_process_that_is_stopped_is_named_once_and_waited_for(ds, monkeypatch):
    monkeypatch.setattr("ingot.loader.processes._PAUSE_S", 0.01)
    monkeypatch.setattr("ingot.loader.processes._PAUSES_MAX", 3)
    before = children()
    with ingot.Loader(ds.map(heavy), 8, processes=1, prefetch=1) as loader:
        loop = iter(loader)
        first = next(loop)
        (pid,) = children() - before
        os.kill(pid, signal.SIGSTOP)
        told = []
        go_on = threading.Event()

        def wake(message, *_, **__):
            told.append(str(message))
            go_on.set()

        monkeypatch.setattr("warnings.warn", wake)
        waker = threading.Thread(target=lambda: go_on.wait() and os.kill(pid, signal.SIGCONT))
        waker.start()
        batches = [first, *loop]
        waker.join()
    assert len(told) == 1
    assert f"worker process {pid} has not answered" in told[0]
    assert f"kill -CONT {pid}" in told[0]
    assert_same(batches, ingot.Loader(ds.map(heavy), 8, workers=0))


def open_memory_files():
    """Return how many descriptors of such files this process has open."""
    count = 0
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            count += "memfd:ingot-batch" in str(one.readlink())
    return count


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_close_frees_shared_memory_but_for_arrays_that_are_held(ds):
    before = mapped_files()
    loader = ingot.Loader(ds.map(heavy), 64, processes=2)
    batches = iter(loader)
    held, dropped = next(batches), next(batches)
    del dropped
    loader.close()
    assert len(mapped_files() - before) == 1
    assert differing(held, ingot.Loader(ds.map(heavy), 64, workers=0).batch(0)) is None
    del held
    assert not mapped_files() - before
    assert open_memory_files() == 0
    assert repr(loader)


def test_a_script_without_a_main_guard_gets_a_hint(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, ingot\n"
        "multiprocessing.set_start_method('spawn', force=True)\n"
        "print(next(iter(ingot.Loader(range(100), 10, processes=1))))\n"
    )
    ran = subprocess.run(
        [sys.executable, str(script)], check=False, capture_output=True, text=True, timeout=200
    )
    guard = 'put what the script runs under if __name__ == "__main__":'
    assert ran.returncode == 1
    assert f"which would start workers once more: {guard}" in ran.stderr
    assert "WorkerError: step 0: the worker process died with exit code 1, 3 times" in ran.stderr
    assert f"it imports the main script: {guard}" in ran.stderr
    assert "bootstrapping phase" not in ran.stderr
