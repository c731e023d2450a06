"""Train a small model on an FFRecord file, and go on from the checkpoint if there is one.

Run as `train.py DATA CHECKPOINT WORKERS [STOP]`: writes the state of the model to CHECKPOINT
every four steps and at the end. At the step of number STOP it says so and waits to be killed.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from ingot.compat.ffrecord.torch import DataLoader, Dataset

EPOCHS = 3
SEED = 7


class Points(Dataset):
    """Eight coordinates and a value in each sample."""

    def process(self, indices, data):  # noqa: ARG002
        return [torch.from_numpy(sample.view(np.float32).copy()) for sample in data]


def save(checkpoint, **state):
    unfinished = checkpoint.with_suffix(".part")
    torch.save(state, unfinished)
    unfinished.replace(checkpoint)


def main(data, checkpoint, num_workers, stop=None):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    generator = torch.Generator().manual_seed(SEED)
    loader = DataLoader(
        Points(data), batch_size=16, shuffle=True, num_workers=num_workers, generator=generator
    )
    first_epoch, first_step, total = 0, 0, len(loader)
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        generator.set_state(state["generator"])
        first_epoch, first_step = state["epoch"], state["step"]
        loader.set_step(first_step)
    for epoch in range(first_epoch, EPOCHS):
        begun = generator.get_state()
        for step, batch in enumerate(loader, first_step):
            if epoch * total + step == stop:
                sys.stdout.write("stopped\n")
                sys.stdout.flush()
                sys.stdin.read()
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(batch[:, :8]), batch[:, 8:])
            loss.backward()
            optimizer.step()
            if (step + 1) % 4 == 0 or step + 1 == total:
                save(
                    checkpoint,
                    model=model.state_dict(),
                    optimizer=optimizer.state_dict(),
                    generator=begun,
                    epoch=epoch,
                    step=step + 1,
                )
        first_step = 0
        loader.set_step(0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), *map(int, sys.argv[4:]))
