"""Where a loader is, as a small dict that can be stored as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingot.loader.steps import Steps
from ingot.order.description import difference
from ingot.order.order import Order

_VERSION = 1


def state_of(order: Order, steps: Steps, step: int, skipped: Sequence[range]) -> dict[str, Any]:
    """Return the state of a loader that hands out `step` next."""
    state = {
        "version": _VERSION,
        "position": steps.span(step)[0],
        "step": step,
        "batch_size": steps.batch_size,
        "fingerprint": order.fingerprint,
        "order": order.describe(),
    }
    return state | ({"skipped": [[one.start, one.stop] for one in skipped]} if skipped else {})


def place_in(state: Mapping[str, Any], order: Order, steps: Steps) -> tuple[int, list[range]]:
    """Return the next step of a state, and the steps that are left out.

    Raises:
        TypeError: It is not a state.
        ValueError: It is the state of another order, or no step of this loader begins there.
    """
    match state:
        case {
            "version": int(version),
            "position": int(position),
            "fingerprint": str(fingerprint),
            "batch_size": int(batch_size),
        } if position >= 0:
            pass
        case _:
            message = f"expected what state_dict() returned, got {state!r:.100}"
            raise TypeError(message)
    if version > _VERSION:
        message = f"the state is of version {version}, this Ingot reads up to {_VERSION}"
        raise ValueError(message)
    if fingerprint != order.fingerprint:
        raise ValueError(_other_order(state.get("order"), order))
    skipped = [range(*one) for one in state.get("skipped", [])]
    if skipped and batch_size != steps.batch_size:
        message = (
            f"the state leaves out steps of {batch_size} samples, and this loader has steps of "
            f"{steps.batch_size}: remove `skipped` from the state to read them"
        )
        raise ValueError(message)
    return steps.step_at(position), skipped


def _other_order(described: Any, order: Order) -> str:
    found = difference(described, order.describe()) if isinstance(described, dict) else None
    if found is None:
        return "the state is of another order"
    return f"the state is of another order: it has {found[0]}, this loader has {found[1]}"


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
