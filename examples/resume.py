"""Train a small model, kill it twice with SIGKILL, resume it elsewhere, and compare the outcome.

`resume.py train FOLDER RANKS WORKERS` is what is killed: each rank is a process, and they share
every batch. Ranks compute the gradient of each sample alone, and rank 0 sums them in the order of
the samples, so that even the rounding is the same on any number of ranks.
"""

import hashlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import ingot

PICTURES = 1_200
SIZE = 12
CLASSES = 3
BATCH = 48
STEPS = 120
EVERY = 10
RATE = 0.4

Floats = npt.NDArray[np.float64]


class Run(NamedTuple):
    """What the log of a run says: a hash of the bytes of each batch, and its loss."""

    batches: dict[int, str]
    losses: dict[int, float]
    repeated: int


def draw(k: int) -> dict[str, Any]:
    """Return a picture of a disc, a square or a cross."""
    rng = np.random.default_rng(k)
    shape, radius = k % CLASSES, rng.uniform(2.5, 4)
    y, x = abs(np.mgrid[:SIZE, :SIZE] - rng.uniform(5, 6, (2, 1, 1)))
    inside = [np.hypot(x, y) < radius, np.maximum(x, y) < radius, np.minimum(x, y) < 1][shape]
    image = np.where(inside, 200, 40) + rng.integers(0, 30, (SIZE, SIZE))
    return {"image": image.astype(np.uint8), "shape": shape}


def jitter(row: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Shift a picture and its brightness at random; the seed belongs to the sample."""
    image = np.roll(row["image"], rng.integers(-1, 2, 2), (0, 1)) / 255
    return {"x": (image + rng.normal(scale=0.1) - 0.4).ravel(), "shape": row["shape"]}


def gradients(weights: Floats, batch: dict[str, Any]) -> list[Floats]:
    """Return the gradient of each sample and, in the last place, its loss."""
    found = []
    for x, shape in zip(batch["x"], batch["shape"], strict=True):
        scores = np.exp(x @ weights)
        scores /= scores.sum()
        loss = -np.log(scores[shape])
        scores[shape] -= 1
        found.append(np.append(np.outer(x, scores), loss))
    return found


def train(folder: Path, rank: int, ranks: int, workers: int, peers: list[Connection]) -> None:
    """Train to the end, from the checkpoint on if there is one.

    Args:
        folder: Has the data, the checkpoint and the log.
        rank: Which part of each batch is ours.
        ranks: How many there are.
        workers: Threads of the loader.
        peers: The other ranks, for rank 0; rank 0, for each other.
    """
    order = ingot.open(folder / "pictures").shuffle(seed=1).map(jitter).repeat()
    loader = ingot.Loader(order, global_batch_size=BATCH, shard=(rank, ranks), workers=workers)
    weights, checkpoint = np.zeros((SIZE * SIZE, CLASSES)), folder / "checkpoint.npz"
    if checkpoint.exists():
        saved = np.load(checkpoint)
        weights = saved["weights"]
        loader.load_state_dict(json.loads(str(saved["loader"])))
    for step, batch in zip(range(loader.step, STEPS), loader, strict=False):
        own = gradients(weights, batch), batch["x"].tobytes() + batch["shape"].tobytes()
        if rank:
            peers[0].send(own)
            weights = peers[0].recv()
            continue
        parts = [own, *(peer.recv() for peer in peers)]
        total = np.sum([one for part, _ in parts for one in part], axis=0) / BATCH
        weights = weights - RATE * total[:-1].reshape(weights.shape)
        for peer in peers:
            peer.send(weights)
        digest = hashlib.sha256(_samples(parts)).hexdigest()
        with (folder / "log").open("a") as log:
            log.write(f"{step} {digest} {float(total[-1])!r}\n")
        if (step + 1) % EVERY == 0:
            save(checkpoint, weights, loader.state_dict())
        print(step, flush=True)


def _samples(parts: list[tuple[Any, bytes]]) -> bytes:
    """Return the bytes of a batch, wherever it is cut into the parts of ranks."""
    images = b"".join(content[: len(own) * SIZE * SIZE * 8] for own, content in parts)
    return images + b"".join(content[len(own) * SIZE * SIZE * 8 :] for own, content in parts)


def save(checkpoint: Path, weights: Floats, state: dict[str, Any]) -> None:
    """Replace the checkpoint at once: a kill leaves the old one or the new one."""
    unfinished = checkpoint.with_name("unfinished.npz")
    np.savez(unfinished, weights=weights, loader=json.dumps(state))
    unfinished.replace(checkpoint)


def train_on(folder: Path, ranks: int, workers: int) -> None:
    """Train with several processes; this one is rank 0."""
    pipes = [multiprocessing.Pipe() for _ in range(ranks - 1)]
    others = [
        multiprocessing.Process(target=train, args=(folder, k, ranks, workers, [theirs]))
        for k, (_, theirs) in enumerate(pipes, 1)
    ]
    for one in others:
        one.start()
    train(folder, 0, ranks, workers, [ours for ours, _ in pipes])
    for one in others:
        one.join()


def run(folder: Path, ranks: int, workers: int, last: int | None = None) -> None:
    """Train in other processes; kill them all once the step `last` is done."""
    command = [sys.executable, __file__, "train", str(folder), str(ranks), str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as job:  # noqa: S603
        if last is not None:
            next(line for line in job.stdout or () if int(line) >= last)
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
    if job.returncode != (0 if last is None else -signal.SIGKILL):
        raise SystemExit(f"training ended with {job.returncode}")


def read_log(folder: Path) -> Run:
    """Return what a log says; a step that was done again must say the same again."""
    found: dict[int, tuple[str, float]] = {}
    lines = (folder / "log").read_text().splitlines()
    for line in lines:
        step, digest, loss = line.split()
        entry = digest, float(loss)
        if found.setdefault(int(step), entry) != entry:
            raise SystemExit(f"step {step} was not the same when it was done again")
    batches = {step: digest for step, (digest, _) in found.items()}
    losses = {step: loss for step, (_, loss) in found.items()}
    return Run(batches, losses, len(lines) - len(found))


def told(ranks: int, workers: int) -> str:
    """Return a number of ranks and workers in words."""
    return f"{ranks} rank{'s' * (ranks > 1)}, {workers} worker{'s' * (workers != 1)} each"


def main() -> None:
    """Train once without a stop and once with two kills, and compare."""
    with tempfile.TemporaryDirectory() as directory:
        straight, killed = Path(directory) / "straight", Path(directory) / "killed"
        spec = {"image": f"array(uint8,{SIZE},{SIZE})", "shape": "int"}
        for folder in (straight, killed):
            with ingot.DatasetWriter(folder / "pictures", spec) as w:
                w.extend(draw(k) for k in range(PICTURES))
        print(f"{PICTURES:,} pictures, {STEPS} steps of {BATCH}, a checkpoint every {EVERY} steps")
        run(straight, 1, 1)
        expected = read_log(straight)
        losses = [expected.losses[step] for step in (0, STEPS - 1)]
        print(
            f"  {told(1, 1):<28} to the end: the loss falls from {losses[0]:.3f} to {losses[1]:.3f}"
        )

        print("the same again, with SIGKILL at two random moments:")
        cuts = sorted(random.sample(range(EVERY, STEPS - 30), 2))
        for (ranks, workers), last in zip([(2, 3), (3, 0)], cuts, strict=True):
            run(killed, ranks, workers, last)
            step = json.loads(str(np.load(killed / "checkpoint.npz")["loader"]))["step"]
            done = max(read_log(killed).batches)
            print(
                f"  {told(ranks, workers):<28} killed after step {done}, to resume at step {step}"
            )
        run(killed, 1, 4)
        found = read_log(killed)
        print(f"  {told(1, 4):<28} to the end: the loss is {found.losses[STEPS - 1]:.3f}")

        same = sum(expected.batches[step] == found.batches.get(step) for step in range(STEPS))
        print(f"batches with the same bytes: {same} of {STEPS}, {found.repeated} were made again")
        pairs = [np.load(folder / "checkpoint.npz")["weights"] for folder in (straight, killed)]
        digests = [hashlib.sha256(weights.tobytes()).hexdigest()[:16] for weights in pairs]
        print(f"final weights: {digests[0]} without a stop, {digests[1]} with two kills")
        if same != STEPS or digests[0] != digests[1]:
            raise SystemExit("the runs differ")


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train_on(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
