"""Attributes that are computed once, among threads and forks."""

import os
import signal
import threading

from ingot.locks import cached_property


class Thing:
    calls = 0
    begun, go = threading.Event(), threading.Event()

    def __init__(self, *, waits=False):
        self.waits = waits

    @cached_property
    def value(self):
        """The value."""
        self.calls += 1
        if self.waits:
            self.begun.set()
            self.go.wait(60)
        return [self.calls]


def test_a_value_is_computed_once_and_kept_by_its_object():
    one, other = Thing(), Thing()
    assert one.value is one.value
    assert one.value is not other.value
    assert (one.calls, other.calls, Thing.value.__doc__) == (1, 1, "The value.")
    assert vars(one)["value"] == [1]


def test_a_child_that_is_forked_while_a_thread_computes_does_not_wait():
    thread = threading.Thread(target=lambda: Thing(waits=True).value)
    thread.start()
    Thing.begun.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(Thing().value[0])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    Thing.go.set()
    thread.join()
