"""Where the indexes of these tests are: in a cache of their own, unless they say otherwise."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.canonical import FOREIGN


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory that stands for the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv("INGOT_INDEX_DIR", raising=False)
    monkeypatch.delenv("INGOT_INDEX", raising=False)
    return folder / "ingot"


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies a directory of golden files, and returns the copy."""

    def golden(name: str) -> Path:
        return Path(shutil.copytree(FOREIGN / name, tmp_path / name))

    return golden
