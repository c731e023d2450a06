"""A loader tells how far it is, and ends soon when it is told to."""

import io
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import ingot

LINES = [
    "epoch 0, step 3 of 10 30%, ",
    "epoch 0, step 10 of 10 100%, ",
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Let time pass only when the test says so."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_progress_shows_step_rate_and_waiting(monkeypatch, clock):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for k, _ in enumerate(ingot.Loader(range(100), 10, workers=0, progress=True)):
        clock[0] += 0.3 if k == 1 else 0
    lines = [one.removesuffix("\x1b[K\n").removesuffix("\x1b[K") for one in shown(terminal)]
    assert [line[: len(words)] for line, words in zip(lines, LINES, strict=True)] == LINES
    assert "samples/s, waited " in lines[0]
    assert lines[0].endswith("0:00 left")
    assert not lines[1].endswith("left")
    assert terminal.getvalue().endswith("\n")


def test_progress_of_an_endless_order_has_no_end(monkeypatch, clock):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    batches = iter(ingot.Loader(ingot.Order.of(range(9)).repeat(), 4, workers=0, progress=True))
    for _ in range(1234):
        next(batches)
    clock[0] += 1
    next(batches)
    assert [line.split(", ")[0] for line in shown(terminal)] == ["step 1,234"]


def test_a_loader_is_quiet_unless_asked(capfd):
    list(ingot.Loader(range(100), 10))
    assert capfd.readouterr() == ("", "")


def shown(terminal):
    return terminal.getvalue().split("\r")[1:]


def test_close_waits_for_samples_and_not_for_whole_batches():
    begun, go = threading.Semaphore(0), threading.Semaphore(0)
    done = []

    def slow(sample):
        begun.release()
        go.acquire()
        done.append(sample)
        return sample

    loader = ingot.Loader(ingot.Order.of(range(1000)).map(slow), 100, workers=2)
    refused = []

    def read():
        with pytest.raises(ingot.ClosedError, match="the loader was closed"):
            next(iter(loader))
        refused.append(True)

    reader = threading.Thread(target=read)
    reader.start()
    begun.acquire()
    begun.acquire()
    closer = threading.Thread(target=loader.close)
    closer.start()
    while not loader._pipeline._is_stopped:
        pass
    go.release(2)
    closer.join()
    reader.join()
    assert (len(done), refused) == (2, [True])


def test_a_seek_discards_unfinished_batches():
    halves = []

    def count(sample):
        halves.append(sample)
        return sample

    with ingot.Loader(ingot.Order.of(range(10_000)).map(count), 100, workers=1) as loader:
        for step in (3, 50, 7):
            loader.seek(step)
            expected = np.arange(100 * step, 100 * step + 100)
            np.testing.assert_array_equal(next(iter(loader)), expected)


def test_an_interrupt_leaves_the_loader_where_it_was(tmp_path):
    code = (
        "import os, signal, sys, threading, ingot\n"
        "main = threading.main_thread()\n"
        "gate = threading.Event()\n"
        "def wait(sample):\n"
        "    if sample == 25 and not gate.is_set():\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        gate.wait()\n"
        "    return sample\n"
        "loader = ingot.Loader(ingot.Order.of(range(40)).map(wait), 10, workers=1)\n"
        "seen = []\n"
        "try:\n"
        "    for batch in loader:\n"
        "        seen.append(batch.tolist())\n"
        "except KeyboardInterrupt:\n"
        "    gate.set()\n"
        "loader.seek(loader.step)\n"
        "seen += [batch.tolist() for batch in loader]\n"
        "print(sum(seen, []) == list(range(40)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize("how", [{"workers": 2}, {"processes": 2}], ids=["threads", "processes"])
def test_ctrl_c_ends_a_program_with_one_traceback(how, tmp_path):
    code = (
        "import sys, ingot\n"
        "def slow(sample):\n"
        "    return sum(range(20_000)) + sample\n"
        f"loader = ingot.Loader(ingot.Order.of(range(10**9)).map(slow), 100, **{how})\n"
        "for k, batch in enumerate(loader):\n"
        "    if k == 3:\n"
        "        print('ready', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    ) as program:
        assert program.stdout.readline() == "ready\n"
        os.killpg(program.pid, signal.SIGINT)
        out, err = program.communicate()
    assert out == ""
    assert err.count("Traceback") == 1
    assert err.endswith("KeyboardInterrupt\n")
