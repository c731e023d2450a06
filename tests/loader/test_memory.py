"""A loader holds as much memory after many steps as after few."""

import json
import sys

import numpy as np
import pytest

import ingot

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

MORE_KB_MAX = 8 << 10
"""About a tenth of what the batches that are read ahead and the allocator hold."""


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(0)
    spec = {"image": "array(uint8,64,64,3)", "label": "int"}
    with ingot.DatasetWriter(tmp_path / "images", spec, sync=False) as writer:
        for k in range(2000):
            image = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
            writer.append({"image": image, "label": k})
    return tmp_path / "images"


def check_memory(run_fault, images, kind, first, last):
    counts = [first, (first + last) // 2, last]
    outcome = run_fault("loader_memory.py", images, kind, *counts)
    assert outcome.returncode == 0, outcome.stderr
    # Growth is in both later figures; what the allocator keeps for a while is in one.
    before, *after = json.loads(outcome.stdout)
    assert min(after) < before + MORE_KB_MAX, [before, *after]


@pytest.mark.parametrize("kind", ["columns", "map"])
def test_memory_does_not_grow_with_the_steps(run_fault, images, kind):
    check_memory(run_fault, images, kind, 300, 1500)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["columns", "map"])
def test_memory_does_not_grow_in_ten_thousand_steps(run_fault, images, kind):
    check_memory(run_fault, images, kind, 1000, 10_000)
