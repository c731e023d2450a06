"""Which positions make which step, and which step comes next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import SupportsIndex

from ingot.order.arguments import INT64_MAX, integer_of


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps over an order, counted on from epoch to epoch.

    An epoch is cut into batches from its beginning on, and every epoch has the same number of
    steps. The epoch in which a loader has resumed is cut from that position on, so that any
    position can be resumed at; its last steps have the same numbers as in any other epoch.

    Attributes:
        batch_size: The number of samples of a step, on all ranks together.
        length: The number of samples of an epoch; None if there is no end.
        drop_last: Whether samples after the last whole batch of an epoch are left out.
        start: The position at which the loader has resumed.
    """

    batch_size: int
    length: int | None
    drop_last: bool
    start: int = 0

    @property
    def per_epoch(self) -> int | None:
        """The number of steps of an epoch."""
        return None if self.length is None else self._num_steps(self.length)

    def _num_steps(self, count: int) -> int:
        """Return the number of steps that some samples make, up to the end of an epoch."""
        return (count + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size

    def num_per_epoch(self) -> int:
        """Return the number of steps of an epoch.

        Raises:
            TypeError: There are no epochs.
        """
        if self.per_epoch is None:
            raise TypeError("an infinite order has no number of steps; take(n) makes it finite")
        return self.per_epoch

    @property
    def first(self) -> int:
        """The step that begins at `start`; the next epoch, if no batch is left of this one."""
        if self.length is None:
            return self.start // self.batch_size
        epoch, place = divmod(self.start, self.length)
        return (epoch + 1) * self.num_per_epoch() - self._num_steps(self.length - place)

    @property
    def is_even(self) -> bool:
        """Whether all steps have `batch_size` samples."""
        if self.length is None or self.drop_last:
            return True
        rest = self.length - self.start % self.length
        return not (self.length % self.batch_size or rest % self.batch_size)

    def epoch_of(self, step: int) -> int:
        """Return the epoch of a step."""
        return 0 if self.per_epoch is None else step // self.per_epoch

    def end_of_epoch(self, step: int) -> int | None:
        """Return the first step of the next epoch; None without epochs."""
        return None if self.per_epoch is None else (self.epoch_of(step) + 1) * self.per_epoch

    def span(self, step: int) -> tuple[int, int]:
        """Return the first position of a step, and where it ends, when epochs follow each other.

        Steps of the resumed epoch that come before `start` are as if it had not been resumed.
        """
        size, first = self.batch_size, self.first
        resumed = self.start + (step - first) * size
        if self.length is None:
            start = resumed if step >= first else step * size
            return start, start + size
        epoch, place = divmod(step, self.num_per_epoch())
        is_resumed = step >= first and epoch == self.start // self.length
        start = resumed if is_resumed else epoch * self.length + place * size
        return start, min(start + size, (epoch + 1) * self.length)

    def checked(self, step: SupportsIndex) -> int:
        """Return a step as an integer.

        Raises:
            ValueError: There is no such step.
        """
        number = integer_of(step, "a step")
        if number < 0 or self.span(number)[1] > INT64_MAX:
            message = f"a step is at least 0 and its positions are below 2^63, got step {number}"
            raise ValueError(message)
        return number

    def share(self, step: int, rank: int, world: int) -> tuple[int, int]:
        """Return the positions of one rank: the shares of all ranks, in order, make the step.

        They differ by at most one sample. No rank is without one: if the last step of an epoch
        has fewer samples than there are ranks, those beyond them have one of these again.
        """
        start, stop = self.span(step)
        count = stop - start
        if count < world:
            place = start + rank % count
            return place, place + 1
        return start + rank * count // world, start + (rank + 1) * count // world

    def resumed_at(self, position: int) -> "Steps":
        """Return the steps of a loader that resumes at a position."""
        return replace(self, start=position)

    def sought(self, step: int) -> "Steps":
        """Return the steps of a loader that goes to a step.

        Before the one that it has resumed at, the epoch is cut from its beginning on again.
        """
        return self if step >= self.first else replace(self, start=0)


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


class Place:
    """The step that a loader hands out next, and the loop that asks for it.

    A loop begins where the loader was put by `put` or `resume`, if nothing was handed out since;
    otherwise with the first epoch of which nothing was handed out. So a loop that was left is
    followed by the next epoch. Without epochs, it begins where the loader is. It ends with its
    epoch. If the loader is put elsewhere, the running loop continues there, to the end of
    that epoch. Only the last loop that has begun may continue.

    Args:
        steps: Which positions make which step.

    Attributes:
        steps: As given, or cut anew where the loader has resumed.
        skipped: The steps that are left out.
        moves: How often the loader was put somewhere.
        stop: Where the running loop ends; None if it does not, or without a loop.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.skipped = Skipped()
        self.moves = 0
        self._step = 0
        self._is_left = False
        self._loop: object = None
        self._is_running = False
        self.stop: int | None = None

    @property
    def next(self) -> int:
        """The step after the last one that was handed out, even if it is left out."""
        return self._step

    @property
    def step(self) -> int:
        """The step that is handed out next."""
        return self.skipped.first_from(self._step)

    @property
    def epoch(self) -> int:
        """The epoch of that step; 0 without epochs."""
        return self.steps.epoch_of(self.step)

    @property
    def _beginning(self) -> int:
        end = self.steps.end_of_epoch(self._step - 1) if self._is_left else None
        return self._step if end is None else end

    @property
    def upcoming(self) -> tuple[int, int | None]:
        """The next step of the running loop, or else of a new one, and where that loop ends."""
        if self._is_running and (self.stop is None or self.step < self.stop):
            return self.step, self.stop
        step = self.skipped.first_from(self._beginning)
        return step, self.steps.end_of_epoch(step)

    def begin(self) -> object:
        """Return a new loop; it moves the place with its first step."""
        self._loop, self._is_running = object(), False
        return self._loop

    def following(self, loop: object) -> tuple[int, int | None]:
        """Return the next step of a loop, and where the loop ends.

        Raises:
            RuntimeError: Another loop has begun.
        """
        if loop is not self._loop:
            raise RuntimeError(
                "another loop over this loader has begun since; use one loader per loop, "
                "or read single batches with batch(step)"
            )
        if not self._is_running:
            self._step, self._is_left, self._is_running = self._beginning, False, True
            self.stop = self.steps.end_of_epoch(self.step)
        return self.step, self.stop

    def advance(self, step: int) -> None:
        """Note that a step was handed out."""
        self._step, self._is_left = step + 1, True

    def put(self, step: SupportsIndex) -> None:
        """Go to a step.

        Raises:
            ValueError: There is no such step.
        """
        number = self.steps.checked(step)
        self.steps = self.steps.sought(number)
        self._go(number)

    def resume(self, steps: Steps, skipped: Iterable[range]) -> None:
        """Go to the first of some steps that begin where a loader was."""
        self.steps = steps
        self.skipped.set(skipped)
        self._go(steps.first)

    def _go(self, step: int) -> None:
        self._step, self._is_left, self._is_running = step, False, False
        self.moves += 1
