"""Build a data set with two workers, and log each call."""

import os
import signal
import sys
import time

import ingot

SPEC = {"a": "int"}


def row(k):
    handle = os.open(sys.argv[1] + ".log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, b"%d\n" % k)
    os.close(handle)
    time.sleep(0.004)
    return {"a": k}


if __name__ == "__main__":
    # What a shell started in the background ignores interrupts, and so do its children.
    ignored = sys.argv[2:] == ["ignoring"]
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    ingot.build(sys.argv[1], row, range(120), spec=SPEC, workers=2, chunk=4, progress=None)
