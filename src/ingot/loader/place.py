"""Where a loader is, and where its loops begin and end."""

from collections.abc import Iterable
from typing import SupportsIndex

from ingot.loader.state import Skipped
from ingot.loader.steps import Steps


class Place:
    """The step that a loader hands out next, and the loop that asks for it.

    A loop begins where the loader was put by `put` or `resume`, if nothing was handed out since;
    otherwise with the first epoch of which nothing was handed out. So a loop that was left is
    followed by the next epoch. Without epochs, it begins where the loader is. It ends with its
    epoch. If the loader is put elsewhere, the running loop goes on there, to the end of that
    epoch. Only the last loop that has begun may go on.

    Args:
        steps: Which positions make which step.

    Attributes:
        steps: As given, or cut anew where the loader has resumed.
        skipped: The steps that are left out.
        moves: How often the loader was put somewhere.
        stop: Where the running loop ends; None if it does not, or there is none.
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
            message = (
                "another loop over this loader has begun since; use one loader per loop, "
                "or read single batches with batch(step)"
            )
            raise RuntimeError(message)
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
