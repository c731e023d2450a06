"""Where a loader is, as a small dict that can be stored as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ingot.loader.steps import Steps
from ingot.order.description import difference, fingerprint_of
from ingot.order.order import Order

_VERSION = 1
_POSITIONS = 1 << 63


def state_of(order: Order, steps: Steps, step: int, skipped: Sequence[range]) -> dict[str, Any]:
    """Return the state of a loader that hands out `step` next."""
    state: dict[str, Any] = {
        "version": _VERSION,
        "position": steps.span(step)[0],
        "step": step,
        "batch_size": steps.batch_size,
        "fingerprint": order.fingerprint,
        "order": order.describe(),
    }
    if skipped:
        state["skipped"] = [[one.start, one.stop] for one in skipped]
        state["drop_last"] = steps.drop_last
    return state


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
        } if version > 0 and 0 <= position < _POSITIONS:
            skipped = _skipped_in(state)
        case _:
            raise TypeError(_no_state(state))
    if version > _VERSION:
        message = f"the state is of version {version}, this Ingot reads up to {_VERSION}"
        raise ValueError(message)
    if fingerprint != order.fingerprint:
        raise ValueError(_other_order(state.get("order"), fingerprint, order))
    if skipped and batch_size != steps.batch_size:
        message = (
            f"the state leaves out steps of {batch_size} samples, and this loader has steps of "
            f"{steps.batch_size}: remove `skipped` from the state to read them"
        )
        raise ValueError(message)
    drop_last = state.get("drop_last", steps.drop_last)
    if skipped and drop_last is not steps.drop_last and steps.length is not None:
        message = (
            f"the state leaves out steps of a loader with drop_last={drop_last}: pass that, or "
            "remove `skipped` from the state to read them"
        )
        raise ValueError(message)
    return steps.step_at(position), skipped


def _skipped_in(state: Mapping[str, Any]) -> list[range]:
    """Return the steps that a state leaves out.

    Raises:
        TypeError: It is not a state.
    """
    found = []
    given = state.get("skipped", [])
    for one in given if isinstance(given, list) else [None]:
        match one:
            case [int(start), int(stop)] if 0 <= start <= stop < _POSITIONS:
                found.append(range(start, stop))
            case _:
                raise TypeError(_no_state(state))
    return found


def _no_state(state: object) -> str:
    return f"expected what state_dict() returned, got {state!r:.200}"


def _other_order(described: Any, fingerprint: str, order: Order) -> str:
    is_whole = isinstance(described, dict) and fingerprint_of(described) == fingerprint
    found = difference(described, order.describe()) if is_whole else None
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
