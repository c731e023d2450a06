"""What the tests of the command line share: how to run it, and data of every kind."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.program import COMMAND, environment
from tests.support import containers


class Ran(NamedTuple):
    """How a command ended, and what it printed: on a terminal, both streams together."""

    code: int
    out: str
    err: str = ""


@pytest.fixture
def ingot_cli():
    """Return a function that runs the command line through pipes."""

    def run(*arguments, cwd=None, text=True, **env):
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            capture_output=True,
            check=False,
            cwd=cwd,
            env=environment(**env),
            stdin=subprocess.DEVNULL,
            timeout=200,
        )
        out = done.stdout.decode() if text else done.stdout
        return Ran(done.returncode, out, done.stderr.decode())

    return run


@pytest.fixture
def on_terminal():
    """Return a function that runs the command line on a pseudo-terminal."""

    def run(*arguments, cwd=None):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env=environment(),
            start_new_session=True,
        )
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says so when the other end is closed.
                break
            if not piece:
                break
            pieces.append(piece)
        os.close(ours)
        return Ran(process.wait(200), b"".join(pieces).decode().replace("\r\n", "\n"))

    return run


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """Return a folder with the same data in every container."""
    folder = tmp_path_factory.mktemp("data")
    containers.make(folder)
    return folder
