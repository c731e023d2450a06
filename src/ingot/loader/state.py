"""Where a loader is, as a small dict that JSON can store, and whether it resumes there exactly."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ingot.loader.frameworks import bytes_of, is_plain_tensor
from ingot.loader.steps import Steps
from ingot.order.arguments import INT64_MAX
from ingot.order.description import (
    ALGORITHM,
    difference_of_composition,
    difference_of_verbs,
    fingerprint_of,
    other_data,
)
from ingot.order.order import Order

if TYPE_CHECKING:
    from ingot.loader.loader import Loader

_VERSION = 2


def state_of(order: Order, steps: Steps, step: int, skipped: Sequence[range]) -> dict[str, Any]:
    """Return the state of a loader that hands out `step` next."""
    state: dict[str, Any] = {
        "version": _VERSION,
        "position": steps.span(step)[0],
        "step": step,
        "global_batch_size": steps.batch_size,
        "fingerprint": order.fingerprint,
        "order": order.describe(),
    }
    if skipped:
        state["skipped"] = [[one.start, one.stop] for one in skipped]
        state["drop_last"] = steps.drop_last
    return state


def place_in(
    state: Mapping[str, Any], order: Order, steps: Steps, *, allow_other_data: bool = False
) -> tuple[Steps, list[range]]:
    """Return the steps from the position of a state on, and those that are left out.

    Args:
        state: The state.
        order: The order of the loader.
        steps: The steps of the loader.
        allow_other_data: Whether to take the state of an order of the same composition over
            other data.

    Raises:
        TypeError: It is not a state; the message names what is wrong in it.
        ValueError: It is the state of another order or of other data, or of another version, or
            leaves out steps of another size.
    """
    given: object = state
    if not isinstance(given, Mapping):
        raise TypeError(f"expected what state_dict() returned, got {given!r:.200}")
    if (version := _count_in(state, "version", 1)) != _VERSION:
        raise ValueError(_other_version(version))
    position = _count_in(state, "position")
    batch_size = _count_in(state, "global_batch_size", 1)
    _count_in(state, "step")
    if not isinstance(state.get("fingerprint"), str):
        raise _wrong(state, "fingerprint", "a text")
    if not isinstance(state.get("drop_last", False), bool):
        raise _wrong(state, "drop_last", "True or False")
    skipped = _skipped_in(state)
    if state["fingerprint"] != order.fingerprint:
        _refuse_other_order(state, order, allow_other_data=allow_other_data)
    if skipped and batch_size != steps.batch_size:
        raise ValueError(
            f"the state leaves out steps of {batch_size} samples, and this loader has steps of "
            f"{steps.batch_size}: pass global_batch_size={batch_size}, or remove `skipped` from "
            "the state to read them"
        )
    drop_last = state.get("drop_last", steps.drop_last)
    if skipped and drop_last is not steps.drop_last and steps.length is not None:
        raise ValueError(
            f"the state leaves out steps of a loader with drop_last={drop_last}: pass that, or "
            "remove `skipped` from the state to read them"
        )
    resumed = steps.resumed_at(position)
    resumed.checked(resumed.first)
    return resumed, skipped


def _skipped_in(state: Mapping[str, Any]) -> list[range]:
    """Return the steps that a state leaves out.

    Raises:
        TypeError: They are not pairs of steps.
    """
    found = []
    given = state.get("skipped", [])
    for one in given if isinstance(given, list) else [None]:
        match one:
            case [int(start), int(stop)] if 0 <= start <= stop <= INT64_MAX:
                found.append(range(start, stop))
            case _:
                raise _wrong(state, "skipped", "a list of pairs of steps")
    return found


def _count_in(state: Mapping[str, Any], key: str, least: int = 0) -> int:
    """Return a number that a state has.

    Raises:
        TypeError: It is not an integer of at least `least`.
    """
    found = state.get(key)
    if type(found) is not int or not least <= found <= INT64_MAX:
        raise _wrong(state, key, f"an integer of at least {least} and below 2^63")
    return found


def _wrong(state: Mapping[str, Any], key: str, expected: str) -> TypeError:
    found = f"{state[key]!r:.80}" if key in state else "nothing"
    message = f"expected what state_dict() returned, whose {key!r} is {expected}, got {found}"
    return TypeError(message)


def _other_version(version: int) -> str:
    if version > _VERSION:
        return f"the state is of version {version}, this Ingot reads up to {_VERSION}"
    return (
        f"the state is of order algorithm version {version}, this release has {ALGORITHM}: a mix, "
        "an interleave or a concat has other samples at the same position; continue with the "
        "release that saved the state, or begin an epoch here, loader.seek(epoch * len(loader))"
    )


def _refuse_other_order(state: Mapping[str, Any], order: Order, *, allow_other_data: bool) -> None:
    """Refuse the state of an order of another composition, or over other data.

    Raises:
        ValueError: It is one.
    """
    described, own = state.get("order"), order.describe()
    if not isinstance(described, dict) or fingerprint_of(described) != state["fingerprint"]:
        raise ValueError("the state is of another order")
    if found := difference_of_composition(described, own):
        message = f"the state is of another order: it has {found[0]}, this loader has {found[1]}"
        step = state.get("step")
        if isinstance(step, int) and not difference_of_verbs(described, own):
            message += f"; to continue at that step anyway, call seek({step})"
        raise ValueError(message)
    if not allow_other_data and (found := other_data(described, own)):
        message = (
            f"the state was saved on other data: on {found[0]}, and this loader has {found[1]}; "
            "to continue with these, pass allow_other_data=True to load_state_dict"
        )
        message += f", or call seek({state['step']})"
        raise ValueError(message)


def verify_resume(loader: "Loader", steps: int, resumes: int, seed: int) -> int:
    """Compare batches that are read in order with those after random resumes.

    Raises:
        ValueError: A batch differs.
    """
    if steps < 1 or resumes < 1:
        raise ValueError(f"expected at least one step and one resume, got {steps} and {resumes}")
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
                    raise ValueError(
                        f"step {step} differs when it is read again, in {where}: a function of "
                        "map, the collate function or a source depends on something other than "
                        "its sample and `rng`"
                    )
                compared += 1
    return compared


def _following(loader: "Loader") -> Iterator[Any]:
    """Yield the batches of a loader from epoch to epoch."""
    while True:
        yield from loader


def differing(one: Any, other: Any, where: str = "batch") -> str | None:
    """Return where two batches differ, such as `batch['image']`; None if they do not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        pairs = [(f"{where}[{key!r}]", one[key], other[key]) for key in one]
    elif _is_list(one) and _is_list(other) and len(one) == len(other):
        pairs = [(f"{where}[{k}]", *pair) for k, pair in enumerate(zip(one, other, strict=True))]
    else:
        return None if _is_same(one, other) else where
    found = (differing(left, right, name) for name, left, right in pairs)
    return next(filter(None, found), None)


def _is_list(one: Any) -> bool:
    return isinstance(one, Sequence) and not isinstance(one, str | bytes | bytearray)


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if is_plain_tensor(one) and is_plain_tensor(other):
        alike = one.dtype == other.dtype and one.shape == other.shape
        return alike and bool((bytes_of(one) == bytes_of(other)).all())
    if hasattr(one, "__array__"):
        left, right = np.asarray(one), np.asarray(other)
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return left.dtype.hasobject or left.tobytes() == right.tobytes()
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 -- not a number
