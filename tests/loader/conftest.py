"""What the tests of the loader read."""

import numpy as np
import pytest

import ingot
from tests.loader.batches import ROWS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loader")
    spec = {"label": "int", "image": "array(uint8,2,3)", "words": "utf8[]", "deep": {"x": "float"}}
    for name, first in (("cats", 0), ("dogs", 1000)):
        with ingot.DatasetWriter(folder / name, spec, sync=False) as writer:
            for k in range(first, first + ROWS):
                image = np.full((2, 3), k % 256, np.uint8)
                words = [f"{k}/{j}" for j in range(k % 5)]
                writer.append({"label": k, "image": image, "words": words, "deep": {"x": k / 2}})
    with ingot.Writer(folder / "logs.ingot", sync=False) as writer:
        writer.extend(b"%d" % k for k in range(ROWS))
    return folder


@pytest.fixture(scope="module")
def cats(folder):
    return ingot.open(folder / "cats")


@pytest.fixture(scope="module")
def dogs(folder):
    return ingot.open(folder / "dogs")


@pytest.fixture(scope="module")
def logs(folder):
    return ingot.open(folder / "logs.ingot")


@pytest.fixture(autouse=True)
def no_ranks(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
