"""The threads of a loader: when they begin, what they hold, when they end."""

import gc
import multiprocessing
import os
import threading
import weakref

import pytest

import ingot
from ingot.loader.pipeline import NAME
from tests.loader.batches import label_of, run


def threads_of_loaders():
    return [one for one in threading.enumerate() if one.name.startswith(NAME)]


def test_the_older_of_two_loops_is_rejected(cats):
    loader = ingot.Loader(cats, 10)
    outer = iter(loader)
    next(outer)
    for _ in loader:
        break
    with pytest.raises(RuntimeError, match="another loop over this loader has begun"):
        next(outer)
    assert loader.step == len(loader) + 1


def test_two_threads_do_not_take_from_one_loader(cats):
    begun, go_on = threading.Event(), threading.Event()

    def wait(row):
        begun.set()
        go_on.wait(60)
        return row["label"]

    loader = ingot.Loader(cats.map(wait), 10, workers=1)
    loop = iter(loader)
    thread = threading.Thread(target=next, args=(loop,))
    thread.start()
    begun.wait(60)
    with pytest.raises(RuntimeError, match="another thread takes a batch from this loader"):
        next(loop)
    go_on.set()
    thread.join()
    assert loader.step == 1


def test_no_more_batches_are_held_than_are_read_ahead(cats):
    held, most = set(), 0
    lock = threading.Lock()

    class Held:
        def __init__(self, samples):
            nonlocal most
            self.samples = samples
            with lock:
                held.add(id(self))
                most = max(most, len(held))

        def __del__(self):
            held.discard(id(self))

    loader = ingot.Loader(cats.repeat(), 4, workers=3, prefetch=5, collate=Held)
    batches = iter(loader)
    for _ in range(50):
        batch = next(batches)
        del batch
    assert most <= 6
    loader.close()
    assert not held


def test_nothing_is_read_beyond_the_epoch():
    asked = []
    loader = ingot.Loader(ingot.Order.of(range(12)).map(asked.append), 4, prefetch=50)
    list(loader)
    assert len(asked) == 12
    list(loader)
    assert len(asked) == 24


def test_close_ends_the_threads_and_what_was_begun(cats):
    before = set(threads_of_loaders())
    loader = ingot.Loader(cats.repeat(), 4, workers=3)
    batches = iter(loader)
    next(batches)
    assert len(set(threads_of_loaders()) - before) == 3
    loader.close()
    loader.close()
    assert set(threads_of_loaders()) <= before
    with pytest.raises(ingot.ClosedError, match="the loader is closed"):
        next(batches)
    with pytest.raises(ingot.ClosedError, match="the loader is closed"):
        loader.batch(0)
    assert loader.state_dict()["step"] == 1


def test_an_unreferenced_loader_has_no_threads(cats):
    before = set(threads_of_loaders())
    batches = iter(ingot.Loader(cats.repeat(), 4, workers=3))
    next(batches)
    threads = set(threads_of_loaders()) - before
    assert len(threads) == 3
    del batches
    gc.collect()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


BUSY = """
import signal, sys, ingot
loader = ingot.Loader(ingot.open(sys.argv[1]).repeat().map(dict), 8, workers=4, prefetch=32)
batches = iter(loader)
next(batches)
"""


def test_the_interpreter_ends_while_threads_work(folder):
    for end in ("", "raise SystemExit(0)", "del loader, batches"):
        outcome = run(BUSY + end, folder / "cats")
        assert (outcome.returncode, outcome.stderr) == (0, "")


def test_an_interrupt_ends_a_wait_and_the_program(folder):
    code = """
import threading
never = threading.Event()
def interrupt(samples):
    if not never.is_set():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    return never.wait()

loader = ingot.Loader(range(8), 8, workers=1, collate=interrupt)
try:
    next(iter(loader))
except KeyboardInterrupt:
    assert loader.step == 0
    never.set()
    assert next(iter(loader)) is True
    print("went on")
"""
    outcome = run(BUSY + code, folder / "cats")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "went on\n", "")


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(cats):
    loader = ingot.Loader(cats.shuffle(1).map(label_of).repeat(), 8, workers=2)
    next(iter(loader))
    ends, starts = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        starts.send([next(iter(loader)).tolist() for _ in range(3)])
        os._exit(0)
    found = [next(iter(loader)).tolist() for _ in range(3)]
    assert ends.recv() == found
    assert os.waitpid(child, 0)[1] == 0


def test_without_threads_the_caller_works(monkeypatch):
    def refuse(_):
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert [one.tolist() for one in ingot.Loader(range(6), 3, workers=4)] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("options", [{"workers": 2}, {"processes": 1}])
def test_a_dropped_loader_ends_without_a_collection(options):
    gc.disable()
    try:
        before = set(threading.enumerate())
        for _ in range(3):
            loader = ingot.Loader(range(100), 10, **options)
            assert len(list(loader)) == 10
            alive = weakref.ref(loader)
            del loader
            assert alive() is None
        for thread in set(threading.enumerate()) - before:
            if thread.name.startswith(NAME):
                thread.join()
    finally:
        gc.enable()
