"""Reading a batch of rows: what is asked of the native engine, and what becomes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot._core import read_plans

Ask: TypeAlias = tuple[int, Sequence[tuple[int, int, int]] | None]
"""The position of a field, and of a sequence which elements of each row; None for all."""

Request: TypeAlias = tuple[NativeRows, npt.NDArray[np.int64], Sequence[Ask]]
"""Files, the row numbers in them, and the fields."""

Packed: TypeAlias = tuple[memoryview | bytearray, bytes | None, bytes | None]
"""The values of a field, concatenated; the offset of each, unless they are numbers; and for a
sequence the number of values in each row."""


class Plan(Protocol):
    """How a source reads a batch of rows.

    Plans of several sources can be read together: their requests wait for the storage at the
    same time.
    """

    @property
    def requests(self) -> Sequence[Request]:
        """What the engine reads."""

    def decode(self, packed: Sequence[Sequence[Packed]]) -> dict[str, Any]:
        """Return the values of each field, given what the engine has read for the requests."""


@dataclass(frozen=True, slots=True)
class OwnPlan:
    """The plan of a source that reads its files without the engine.

    Attributes:
        read: Reads the batch.
    """

    read: Callable[[], dict[str, Any]]

    @property
    def requests(self) -> Sequence[Request]:
        """Nothing."""
        return ()

    def decode(self, packed: Sequence[Sequence[Packed]]) -> dict[str, Any]:
        """Read the batch."""
        del packed
        return self.read()


class Joint:
    """The plans of several sources, read together.

    Args:
        plans: The plans.
        merge: Makes one batch of what they return.
    """

    def __init__(
        self, plans: Sequence[Plan], merge: Callable[[Sequence[dict[str, Any]]], dict[str, Any]]
    ) -> None:
        self._plans = plans
        self._merge = merge
        self.requests: Sequence[Request] = [one for plan in plans for one in plan.requests]

    def decode(self, packed: Sequence[Sequence[Packed]]) -> dict[str, Any]:
        """Return the merged values of each field."""
        return self._merge(Fetched(self._plans, packed).decode())


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the engine has read for some plans, not decoded yet.

    Attributes:
        plans: The plans.
        packed: What it has read for their requests.
    """

    plans: Sequence[Plan]
    packed: Sequence[Sequence[Packed]]

    def decode(self) -> list[dict[str, Any]]:
        """Return the batch of each plan."""
        counts = accumulate((len(plan.requests) for plan in self.plans), initial=0)
        return [
            plan.decode(self.packed[start:stop])
            for plan, (start, stop) in zip(self.plans, pairwise(counts), strict=True)
        ]


def fetch(groups: Sequence[Sequence[Plan]]) -> list[Fetched]:
    """Read what groups of plans ask for, in one native call."""
    requests = [[one for plan in plans for one in plan.requests] for plans in groups]
    packed = read_plans([one for own in requests for one in own])
    ends = accumulate(map(len, requests), initial=0)
    return [
        Fetched(plans, packed[start:stop])
        for plans, (start, stop) in zip(groups, pairwise(ends), strict=True)
    ]


def read(plan: Plan) -> dict[str, Any]:
    """Read the batch of a plan, in one native call."""
    return plan.decode(read_plans(plan.requests))
