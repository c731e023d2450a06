"""Reading a batch of rows: what is asked of the native engine, and what becomes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot._core import read_plans
from ingot.threads import Begun

T = TypeVar("T")

Ask: TypeAlias = tuple[int, Sequence[tuple[int, int, int]] | None]
"""The position of a field, and of a sequence which elements of each row; None for all."""

Request: TypeAlias = tuple[NativeRows, npt.NDArray[np.int64], Sequence[Ask]] | Callable[[], Any]
"""Files, the row numbers in them, and the fields, for the engine; or a function that reads."""

Packed: TypeAlias = tuple[memoryview | bytearray, bytes | None, bytes | None]
"""The values of a field, concatenated; the offset of each, unless they are numbers; and for a
sequence the number of values in each row."""


class Plan(Protocol):
    """How a source reads a batch of rows.

    Plans of several sources can be read together: their requests wait for the storage at the
    same time, those of the engine in one native call and functions on threads.
    """

    @property
    def requests(self) -> Sequence[Request]:
        """What is read."""

    def decode(self, found: Sequence[Any]) -> dict[str, Any]:
        """Return the values of each field, given what was read for each request.

        The engine has read `Packed` values of each field that it was asked for.
        """


class OwnPlan(Generic[T]):
    """The plan of a source that reads its files without the engine.

    Args:
        read: Reads the batch, on any thread.
        decode: Returns the values of each field in what was read.
    """

    def __init__(self, read: Callable[[], T], decode: Callable[[T], dict[str, Any]]) -> None:
        self.requests: Sequence[Request] = (read,)
        self._decode = decode

    def decode(self, found: Sequence[Any]) -> dict[str, Any]:
        """Return the values of each field."""
        return self._decode(found[0])


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

    def decode(self, found: Sequence[Any]) -> dict[str, Any]:
        """Return the merged values of each field."""
        return self._merge(Fetched(self._plans, found).decode())


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was read for some plans, not decoded yet.

    Attributes:
        plans: The plans.
        found: What was read for their requests.
    """

    plans: Sequence[Plan]
    found: Sequence[Any]

    def decode(self) -> list[dict[str, Any]]:
        """Return the batch of each plan."""
        counts = accumulate((len(plan.requests) for plan in self.plans), initial=0)
        return [
            plan.decode(self.found[start:stop])
            for plan, (start, stop) in zip(self.plans, pairwise(counts), strict=True)
        ]


def fetch(groups: Sequence[Sequence[Plan]]) -> list[Fetched]:
    """Read what groups of plans ask for, all at the same time."""
    requests = [[one for plan in plans for one in plan.requests] for plans in groups]
    found = answers([one for own in requests for one in own])
    ends = accumulate(map(len, requests), initial=0)
    return [
        Fetched(plans, found[start:stop])
        for plans, (start, stop) in zip(groups, pairwise(ends), strict=True)
    ]


def read(plan: Plan) -> dict[str, Any]:
    """Read the batch of a plan."""
    return plan.decode(answers(plan.requests))


def answers(requests: Sequence[Request]) -> Sequence[Any]:
    """Read what requests ask for, all at the same time, and wait once for all."""
    functions = [one for one in requests if callable(one)]
    if not functions:
        return read_plans(requests)  # type: ignore[arg-type]
    of_engine = [one for one in requests if not callable(one)]
    begun = [Begun(one) for one in functions[bool(not of_engine) :]]
    try:
        native = iter(read_plans(of_engine) if of_engine else ())
        own = iter([*([] if of_engine else [functions[0]()]), *(one.end() for one in begun)])
    finally:
        for one in begun:
            one.cancel()
    return [next(own if callable(one) else native) for one in requests]
