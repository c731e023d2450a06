"""Sources of Granular as plain data, made and loaded with any of its implementations."""

import atexit
import functools
import queue
import threading
import types

import numpy as np

ROWS = 11


class Queue(queue.Queue):
    """A queue between threads, with the methods of one between processes."""

    def close(self):
        """Do nothing."""

    cancel_join_thread = join_thread = close


class Process(threading.Thread):
    """A thread that is started like a process."""

    def terminate(self):
        """Let it end: it looks for that."""


THREADS = types.SimpleNamespace(Process=Process, Queue=Queue, Event=threading.Event)
"""Lets Granular's loader work on threads, which start at once."""


def datapoint(number):
    """Return the row with a number."""
    return {"id": number, "x": np.array([number, -number], np.float32)}


def salted(step, salt):
    """Return another datapoint for each step."""
    return datapoint(step * 31 + salt)


def change(point, seed):
    """Return a datapoint with random numbers in it."""
    rng = np.random.default_rng(seed)
    return {"id": point["id"] + int(rng.integers(1000)), "x": point["x"] * rng.random()}


@functools.cache
def opened(granular, folder):
    """Return a reader of a folder."""
    return granular.DatasetReader(folder, granular.decoders)


def made(granular, plan, folder):
    """Return the source of a plan."""
    kind, *rest = plan
    sources = granular.sources
    make = functools.partial(made, granular, folder=folder)
    match kind, rest:
        case "call", [salt]:
            source = functools.partial(salted, salt=salt)
        case "list", [length]:
            source = [datapoint(k) for k in range(length)]
        case "reader", []:
            source = opened(granular, folder)
        case "interleave", parts:
            source = sources.Interleave([make(one) for one in parts])
        case "mix", [parts, weights, seed]:
            source = sources.Mix([make(one) for one in parts], weights, seed)
        case "transform", [part, seed]:
            source = sources.Transform(make(part), change, seed)
        case "epochs", [part, length, shuffle]:
            source = sources.Epochs(make(part), length, shuffle)
        case "sample", [part, length, seed]:
            source = sources.Sample(make(part), length, seed)
        case "truncate", [part, limit, length]:
            source = sources.Truncate(make(part), limit, length)
        case _:
            raise ValueError(kind)
    return source


def batches(granular, source, start, count, options):
    """Return batches from a step on, as arrays, and the state after them."""
    loader = granular.Loader(source, **options)
    try:
        loader.load({"step": start})
        found = iter(loader)
        return [
            {key: np.array(value) for key, value in next(found).items()} for _ in range(count)
        ], loader.save()
    finally:
        loader.close()
        atexit.unregister(loader.close)


def theirs(granular, source, start, count, options):
    """Return what Granular's own loader gives, without its pause when it closes."""
    granular.loader.time = types.SimpleNamespace(sleep=abs)
    return batches(granular, source, start, count, {**options, "workers": 1, "mp": THREADS})
