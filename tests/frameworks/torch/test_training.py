"""A training run that is killed and resumed elsewhere ends with the weights of one that is not.

The runs sum the gradients of single samples in the order of the samples, in double precision and
on one thread, so weights are compared bit by bit, also between numbers of ranks.
"""

import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import ingot
from tests.support import FAULTS

SCRIPT = FAULTS / "train_shapes.py"
IMAGES = 120
STEPS = 36
"""Three epochs of ten steps, and a part of the fourth."""


@dataclass(frozen=True)
class Run:
    """On how many ranks and workers, and with which loader, a part of the training runs."""

    world: int
    workers: int
    loader: str


PLANS = [
    [Run(1, 2, "torch"), Run(2, 0, "ingot"), Run(1, 3, "stateful")],
    [Run(2, 1, "stateful"), Run(1, 0, "torch"), Run(3, 1, "torch"), Run(1, 2, "ingot")],
]


def drawn(k):
    """Return a picture of a disc, a square or a cross, and which of them it is."""
    rng = np.random.default_rng(k)
    label = k % 3
    x, y, r = rng.integers(5, 11), rng.integers(5, 11), rng.integers(3, 5)
    down, right = np.mgrid[:16, :16] - np.array([y, x])[:, None, None]
    shape = (
        down**2 + right**2 <= r * r,
        np.maximum(abs(down), abs(right)) < r,
        (np.minimum(abs(down), abs(right)) < 1) & (np.maximum(abs(down), abs(right)) <= r),
    )[label]
    bright, dark = rng.integers(160, 240, 3), rng.integers(0, 60, 3)
    image = np.where(shape[..., None], bright, dark) + rng.integers(0, 16, (16, 16, 3))
    return {"image": np.clip(image, 0, 255).astype(np.uint8), "label": label}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("shapes") / "data"
    spec = {"image": "array(uint8,16,16,3)", "label": "int"}
    with ingot.DatasetWriter(path, spec, shard_rows=50, sync=False) as writer:
        writer.extend(map(drawn, range(IMAGES)))
    return path


def start(data, folder, run):
    command = [sys.executable, str(SCRIPT), str(data)]
    command += [str(folder / "checkpoint"), str(folder / "log")]
    command += [str(run.world), str(run.workers), run.loader, str(STEPS)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def run_to_the_end(data, folder, run):
    with start(data, folder, run) as job:
        job.communicate(timeout=200)
    assert job.returncode == 0


def run_until_killed(data, folder, run, last):
    """Kill all processes of a run as soon as it says that a step is done."""
    with start(data, folder, run) as job:
        try:
            for line in job.stdout:
                if int(line) >= last:
                    break
        finally:
            os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == -signal.SIGKILL


def weights(folder):
    state = torch.load(folder / "checkpoint")
    assert state["step"] == STEPS
    return state["model"]


def steps_of(folder):
    """Return hash and loss of each step; a step that was done again has the same."""
    found = {}
    for line in (folder / "log").read_text().splitlines():
        step, *rest = line.split()
        assert found.setdefault(int(step), rest) == rest
    return [found[step] for step in range(STEPS)]


@pytest.fixture(scope="module")
def straight(data, tmp_path_factory):
    """Return a folder in which the training ran without a stop, on one rank."""
    folder = tmp_path_factory.mktemp("straight")
    run_to_the_end(data, folder, Run(1, 0, "ingot"))
    losses = [float(loss) for _, loss in steps_of(folder)]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    return folder


def check_kills(data, straight, folder, plan, seed):
    rng = random.Random(seed)
    kills = sorted(rng.sample(range(1, STEPS - 8), len(plan) - 1))
    for run, last in zip(plan, kills, strict=False):
        run_until_killed(data, folder, run, last)
    run_to_the_end(data, folder, plan[-1])
    assert steps_of(folder) == steps_of(straight)
    expected, found = weights(straight), weights(folder)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_a_killed_run_ends_with_the_same_weights(data, straight, tmp_path):
    check_kills(data, straight, tmp_path, PLANS[0], seed=0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_many_killed_runs_end_with_the_same_weights(data, straight, tmp_path, seed):
    check_kills(data, straight, tmp_path, PLANS[seed % 2], seed)
