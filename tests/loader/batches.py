"""Functions of samples, and batches put together from the parts of all ranks."""

import json
import subprocess
import sys
from itertools import islice

import ingot

ROWS = 60


def noisy(sample, rng):
    return {"label": sample["label"], "noise": rng.integers(1 << 40)}


def label_of(sample):
    return sample["label"]


def refuse_sevens(sample):
    if sample["label"] % 10 == 7:
        message = f"no {sample['label']}"
        raise KeyError(message)
    return sample["label"]


def plain(batch):
    """Return a batch as nested lists."""
    match batch:
        case dict():
            return {key: plain(one) for key, one in batch.items()}
        case list() | tuple():
            return [plain(one) for one in batch]
        case _ if hasattr(batch, "tolist"):
            return batch.tolist()
    return batch


def joined(parts):
    """Return the batch of a step from the parts of all ranks."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: joined([one[key] for one in parts]) for key in first}
    return [one for part in parts for one in part]


def following(loader):
    """Yield the batches of a loader from epoch to epoch."""
    while True:
        yield from loader


def global_batches(order, count, *, worlds, first=None, **options):
    """Return `count` batches, read by as many ranks, from the state `first` on; and the state."""
    loaders = [ingot.Loader(order, shard=(rank, worlds), **options) for rank in range(worlds)]
    found = []
    for loader in loaders:
        with loader:
            if first is not None:
                loader.load_state_dict(json.loads(json.dumps(first)))
            begun = loader.step
            found.append([plain(one) for one in islice(following(loader), count)])
    states = [loader.state_dict() for loader in loaders]
    assert all(state == states[0] for state in states)
    whole = []
    for step, parts in enumerate(zip(*found, strict=True), begun):
        start, stop = loaders[0]._place.steps.span(step)
        whole.append(joined(parts[: stop - start]))  # Other ranks have one of these again.
    return whole, states[0]


def run(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )
