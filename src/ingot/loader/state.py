"""Where a loader is, as a small dict that can be stored as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingot.loader.steps import Steps
from ingot.order.description import (
    ALGORITHM,
    difference_of_composition,
    difference_of_verbs,
    fingerprint_of,
    other_data,
)
from ingot.order.order import Order

_VERSION = 2
_POSITIONS = 1 << 63


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
        message = f"expected what state_dict() returned, got {given!r:.200}"
        raise TypeError(message)
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
        message = (
            f"the state leaves out steps of {batch_size} samples, and this loader has steps of "
            f"{steps.batch_size}: pass global_batch_size={batch_size}, or remove `skipped` from "
            "the state to read them"
        )
        raise ValueError(message)
    drop_last = state.get("drop_last", steps.drop_last)
    if skipped and drop_last is not steps.drop_last and steps.length is not None:
        message = (
            f"the state leaves out steps of a loader with drop_last={drop_last}: pass that, or "
            "remove `skipped` from the state to read them"
        )
        raise ValueError(message)
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
            case [int(start), int(stop)] if 0 <= start <= stop < _POSITIONS:
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
    if type(found) is not int or not least <= found < _POSITIONS:
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
        "an interleave or a concat has other samples at the same position; go on with the release "
        "that saved the state, or begin an epoch here, loader.seek(epoch * len(loader))"
    )


def _refuse_other_order(state: Mapping[str, Any], order: Order, *, allow_other_data: bool) -> None:
    """Refuse the state of an order of another composition, or over other data.

    Raises:
        ValueError: It is one.
    """
    described, own = state.get("order"), order.describe()
    if not isinstance(described, dict) or fingerprint_of(described) != state["fingerprint"]:
        message = "the state is of another order"
        raise ValueError(message)
    if found := difference_of_composition(described, own):
        message = f"the state is of another order: it has {found[0]}, this loader has {found[1]}"
        step = state.get("step")
        if isinstance(step, int) and not difference_of_verbs(described, own):
            message += f"; to go on at that step anyway, call seek({step})"
        raise ValueError(message)
    if not allow_other_data and (found := other_data(described, own)):
        message = (
            f"the state was saved on other data: on {found[0]}, and this loader has {found[1]}; "
            "to go on with these, pass allow_other_data=True to load_state_dict"
        )
        message += f", or call seek({state['step']})"
        raise ValueError(message)


class Skipped:
    """Steps that are left out. Threads may read it while it changes."""

    def __init__(self) -> None:
        self.ranges: Sequence[range] = ()

    def set(self, ranges: Iterable[range]) -> None:
        """Leave out these steps and no others."""
        found: list[range] = []
        for one in sorted((one for one in ranges if one), key=lambda one: one.start):
            if found and one.start <= found[-1].stop:
                found[-1] = range(found[-1].start, max(found[-1].stop, one.stop))
            else:
                found.append(one)
        self.ranges = tuple(found)

    def first_from(self, step: int) -> int:
        """Return the first step from `step` on that is not left out."""
        return next((one.stop for one in self.ranges if step in one), step)

    def after(self, step: int) -> int:
        """Return the first step after `step` that is not left out."""
        return self.first_from(step + 1)
