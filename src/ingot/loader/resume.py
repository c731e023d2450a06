"""Checking that a loader resumes exactly."""

import json
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ingot.loader.difference import differing

if TYPE_CHECKING:
    from ingot.loader.loader import Loader


def verify_resume(loader: "Loader", steps: int, resumes: int, seed: int) -> int:
    """Compare batches that are read in order with those after random resumes.

    Raises:
        ValueError: A batch differs.
    """
    if steps < 1 or resumes < 1:
        message = f"expected at least one step and one resume, got {steps} and {resumes}"
        raise ValueError(message)
    with loader._again(workers=2) as straight:  # noqa: SLF001 -- this is a part of the loader
        states, batches = [], []
        following = _following(straight)
        for _ in range(steps):
            states.append((straight.step, json.dumps(straight.state_dict())))
            batches.append(next(following))
    rng = random.Random(seed)  # noqa: S311 -- no secret
    starts = sorted({0, *(rng.randrange(steps) for _ in range(resumes))})
    compared = 0
    for start in starts:
        with loader._again(workers=1) as resumed:  # noqa: SLF001
            resumed.load_state_dict(json.loads(states[start][1]))
            following = _following(resumed)
            for (step, _), batch in zip(states[start:], batches[start:], strict=True):
                where = differing(batch, next(following))
                if where is not None:
                    message = (
                        f"step {step} differs when it is read again, in {where}: a function of "
                        "map, the collate function or a source depends on something other than "
                        "its sample and `rng`"
                    )
                    raise ValueError(message)
                compared += 1
    return compared


def _following(loader: "Loader") -> Iterator[Any]:
    """Yield the batches of a loader from epoch to epoch."""
    while True:
        yield from loader
