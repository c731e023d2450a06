"""Functions that make rows of inputs, for processes to import."""

import os
import signal
from pathlib import Path

from ingot.codecs import Codec

SPEC = {"a": "int", "text": "utf8"}


class Shout(Codec):
    name = "shout"

    def encode(self, value):
        return value.upper().encode()

    def decode(self, data):
        return data.decode() + "!"


def row(k):
    return {"a": k, "text": f"row {k}"}


def rows(k):
    """Yield none, one or several rows, or return them in other ways."""
    made = [{"a": 10 * k + j, "text": "x" * j} for j in range(k % 4)]
    return [None, made[:1] and made[0], made, iter(made)][k % 4]


def many(k):
    """Return a long list of rows; that of the last input has a bad one."""
    rows = [{"a": 3000 * k + j, "text": "x" * (j % 5)} for j in range(3000)]
    if k == 2:
        rows[2500] = {"a": None, "text": "bad"}
    return rows


def expected(numbers):
    return [10 * k + j for k in numbers for j in range(0 if k % 4 == 0 else k % 4)]


def fail(folder, k):
    """Fail at some inputs as long as a file is there that says so."""
    if (Path(folder) / str(k)).exists():
        message = f"cannot do {k}"
        raise LookupError(message)
    return row(k)


class StubbornError(Exception):
    """Cannot be pickled."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fail_stubbornly(k):
    raise StubbornError(k, "more")


def vanish(k):
    if k == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return row(k)


def leave(k):
    if k == 7:
        os._exit(3)
    return row(k)


def wrong(k):
    return {"a": "seven"} if k == 7 else row(k)


def number(k):
    return k


def shout(word):
    return {"word": word}
