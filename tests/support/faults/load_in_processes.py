"""Read a data set with a loader that has two processes.

Run as `load_in_processes.py DATA METHOD what`, where METHOD is how processes start and `what` is
whole (print all labels), wait (print the processes and wait to be killed) or lambda.
"""

import json
import multiprocessing
import os
import signal
import sys

import ingot


def same(row):
    return row


def main(data, method, what):
    multiprocessing.set_start_method(method)
    order = ingot.open(data).shuffle(seed=2).map(same if what != "lambda" else lambda row: row)
    loader = ingot.Loader(order, 10, processes=2)
    if what == "wait":
        next(iter(loader))
        tell([os.getpid(), *(one.pid for one in multiprocessing.active_children())])
        signal.pause()
    tell([batch["label"].tolist() for batch in loader])


def tell(found):
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
