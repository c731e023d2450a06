"""Locks that the child of a fork finds free."""

import os
import threading

import pytest

from ingot.locks import ProcessLock


def succeeds(work):
    """Whether a child of this process does some work within a minute."""
    child = os.fork()
    if child == 0:
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(60)
        os._exit(worker.is_alive())
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_lock_that_a_thread_holds_at_a_fork_is_free_in_the_child():
    lock = ProcessLock()
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock.own:
            held.set()
            done.wait()

    def take():
        with lock.own, lock.own:
            pass

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        assert succeeds(take)
    finally:
        done.set()
        holder.join()


def test_threads_of_a_process_take_turns():
    lock = ProcessLock()
    inside, most = [], []

    def work():
        for _ in range(200):
            with lock.own:
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
