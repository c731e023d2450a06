"""Train a small convolutional network on drawn shapes, and go on from the checkpoint if any.

Run as `train_shapes.py DATA CHECKPOINT LOG WORLD WORKERS LOADER STEPS`. Each rank is a process;
they share each batch. After each step, rank 0 appends a line to LOG: the step, a hash of the bytes
of the whole batch and the loss. Every four steps it replaces CHECKPOINT. LOADER is "ingot",
"torch" or "stateful": the state in a checkpoint is the same for all.

Each rank computes the gradient of each of its samples alone, and all ranks sum the gradients of
the whole batch in the order of the samples. So weights have the same bits on any number of ranks.
"""

import hashlib
import multiprocessing
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed
from torch import nn

import ingot
import ingot.torch

BATCH = 12
EVERY = 4
CLASSES = 3


def augment(row, rng):
    """Flip and brighten a picture at random."""
    pixels = row["image"].astype(np.float64) / 255 - 0.5
    pixels = pixels[:, ::-1] if rng.random() < 0.5 else pixels
    image = np.ascontiguousarray(np.moveaxis(pixels + rng.normal(scale=0.05), -1, 0))
    return {"image": image, "label": row["label"]}


def make_model():
    torch.manual_seed(5)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12 * 4 * 4, CLASSES),
    )
    return model.double()


def gradients(model, batch):
    """Return loss and gradient of each sample, one line each."""
    lines = []
    for image, label in zip(batch["image"], batch["label"], strict=True):
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(image[None]), label[None])
        loss.backward()
        parts = [loss.detach()[None], *(one.grad.flatten() for one in model.parameters())]
        lines.append(torch.cat(parts))
    return torch.stack(lines)


def digests(batch):
    """Return a hash of the bytes of each sample, one line each."""
    lines = []
    for image, label in zip(batch["image"], batch["label"], strict=True):
        content = image.numpy().tobytes() + label.numpy().tobytes()
        lines.append(
            torch.frombuffer(bytearray(hashlib.sha256(content).digest()), dtype=torch.uint8)
        )
    return torch.stack(lines)


def gathered(own, world):
    """Return the lines of all ranks, in the order of the samples."""
    if world == 1:
        return own
    sizes = [BATCH * (rank + 1) // world - BATCH * rank // world for rank in range(world)]
    padded = torch.zeros(max(sizes), own.shape[1], dtype=own.dtype)
    padded[: len(own)] = own
    parts = [torch.empty_like(padded) for _ in range(world)]
    torch.distributed.all_gather(parts, padded)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


def make_loader(job, order, shard):
    """Return a loader, and what loads a state into it."""
    workers, kind = job.workers, job.loader
    batches = {"global_batch_size": BATCH, "drop_last": True, "shard": shard}
    options = {"num_workers": workers} | ({"multiprocessing_context": "fork"} if workers else {})
    if kind == "ingot":
        loader = ingot.Loader(order, workers=workers, to="torch", **batches)
        return loader, loader.load_state_dict
    if kind == "torch":
        loader = ingot.torch.DataLoader(order, **batches, **options)
        return loader, loader.load_state_dict
    from torchdata.stateful_dataloader import StatefulDataLoader  # noqa: PLC0415 -- it takes long

    dataset = ingot.torch.Dataset(order)
    sampler = ingot.torch.Sampler(dataset, **batches)
    loader = StatefulDataLoader(dataset, sampler=sampler, batch_size=None, **options)
    return loader, sampler.load_state_dict


@dataclass(frozen=True)
class Job:
    """What all ranks of a run have in common."""

    data: str
    checkpoint: Path
    log: Path
    world: int
    workers: int
    loader: str
    steps: int


def train(rank, store, job):
    world = job.world
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    if world > 1:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{store}", rank=rank, world_size=world
        )
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    order = ingot.open(job.data).shuffle(seed=1).map(augment)
    loader, load = make_loader(job, order, (rank, world))
    step = 0
    if job.checkpoint.exists():
        state = torch.load(job.checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        load(state["data"])
        step = state["step"]
    while step < job.steps:
        for batch in loader:
            losses, *flat = (
                gathered(gradients(model, batch), world)
                .sum(0)
                .split([1, *(one.numel() for one in model.parameters())])
            )
            for one, gradient in zip(model.parameters(), flat, strict=True):
                one.grad = gradient.view_as(one) / BATCH
            optimizer.step()
            found = hashlib.sha256(gathered(digests(batch), world).numpy().tobytes()).hexdigest()
            if rank == 0:
                with job.log.open("a") as file:
                    file.write(f"{step} {found} {losses.item() / BATCH!r}\n")
                sys.stdout.write(f"{step}\n")
                sys.stdout.flush()
            step += 1
            if rank == 0 and (step % EVERY == 0 or step == job.steps):
                save(job.checkpoint, model, optimizer, loader.state_dict(), step)
            if step == job.steps:
                break
    if world > 1:
        torch.distributed.destroy_process_group()


def save(checkpoint, model, optimizer, state, step):
    unfinished = checkpoint.with_suffix(".part")
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "data": state,
        "step": step,
    }
    torch.save(content, unfinished)
    unfinished.replace(checkpoint)


def main(job):
    warnings.filterwarnings("ignore", "This DataLoader will create|'set_vital'", UserWarning)
    context = multiprocessing.get_context("fork")  # PyTorch is imported once.
    with tempfile.TemporaryDirectory(dir=job.checkpoint.parent) as directory:
        store = Path(directory) / "store"
        ranks = range(1, job.world)
        others = [context.Process(target=train, args=(rank, store, job)) for rank in ranks]
        for one in others:
            one.start()
        train(0, store, job)
        for one in others:
            one.join()


if __name__ == "__main__":
    data, checkpoint, log, world, workers, loader, steps = sys.argv[1:]
    main(Job(data, Path(checkpoint), Path(log), int(world), int(workers), loader, int(steps)))
