"""Granular 0.21, which runs in another process."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OLD = Path(sys.prefix) / "granular-0.21"


@pytest.fixture(scope="module")
def old():
    """Return a function that asks Granular 0.21."""
    environment = {**os.environ, "PYTHONPATH": str(OLD)}
    with subprocess.Popen(
        [sys.executable, HERE / "old.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:

        def ask(name, *arguments):
            pickle.dump((name, arguments), process.stdin)
            process.stdin.flush()
            answer = pickle.load(process.stdout)  # noqa: S301 -- our own program answers
            if isinstance(answer, Exception):
                raise answer
            return answer

        yield ask
        process.stdin.close()
