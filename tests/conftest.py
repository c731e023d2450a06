"""What the tests share: files to read, and programs to break them with."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import ingot
from tests.support import FAULTS


@pytest.fixture(scope="session", autouse=True)
def _indexes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep indexes out of the cache of whoever runs the tests."""
    os.environ.setdefault("INGOT_INDEX_DIR", str(tmp_path_factory.mktemp("indexes")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.ingot"


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a closed file of `records` and returns its path."""

    def make(records: Iterable[bytes], *, name: str = "x.ingot", **options: object) -> Path:
        with ingot.Writer(tmp_path / name, **options) as writer:
            writer.extend(records)
        return tmp_path / name

    return make


@pytest.fixture
def open_files() -> Callable[[Path], list[str]]:
    """Return a function that returns what this process has open in a folder.

    All descriptors of the process would not do: what other tests left may open and close
    files meanwhile.
    """

    def open_files(folder: Path) -> list[str]:
        found = []
        for one in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.append(str(one.readlink()))
        return [one for one in found if one.startswith(str(folder))]

    return open_files


@pytest.fixture
def run_fault() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a script of `faults` in a process of its own."""

    def run_fault(
        script: str,
        *arguments: object,
        under: Iterable[str] = (),
        env: dict[str, str] | None = None,
        timeout: float = 250,
    ) -> subprocess.CompletedProcess[str]:
        command = [*under, sys.executable, "-X", "faulthandler", str(FAULTS / script)]
        return subprocess.run(
            [*command, *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
        )

    return run_fault


@pytest.fixture
def strace() -> str:
    """Return the strace program; skip where it is missing or not allowed to trace."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("needs strace")
    probe = subprocess.run(
        [program, "-f", "-o", os.devnull, sys.executable, "-c", ""],
        check=False,
        capture_output=True,
    )
    if probe.returncode != 0:
        pytest.skip("strace may not trace here")
    return program
