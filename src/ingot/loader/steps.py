"""Which positions of an order make which step."""

from dataclasses import dataclass, replace
from typing import SupportsIndex

from ingot.order.arguments import integer_of

_POSITIONS = (1 << 63) - 1


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
            message = "an infinite order has no number of steps; take(n) makes it finite"
            raise TypeError(message)
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
        """Return the first step of the next epoch; None if there is none."""
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
        if number < 0 or self.span(number)[1] > _POSITIONS:
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
