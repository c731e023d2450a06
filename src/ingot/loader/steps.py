"""Which positions of an order make which step."""

from dataclasses import dataclass
from typing import SupportsIndex

from ingot.order.arguments import integer_of

_POSITIONS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps over an order, counted on from epoch to epoch.

    Attributes:
        batch_size: The number of samples of a step, on all ranks together.
        length: The number of samples of an epoch; None if there is no end.
        drop_last: Whether samples after the last whole batch of an epoch are left out.
    """

    batch_size: int
    length: int | None
    drop_last: bool

    @property
    def per_epoch(self) -> int | None:
        """The number of steps of an epoch."""
        if self.length is None:
            return None
        return (self.length + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size

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
    def last_size(self) -> int:
        """The number of samples of the last step of an epoch."""
        if self.length is None or self.drop_last:
            return self.batch_size
        return self.length % self.batch_size or self.batch_size

    def epoch_of(self, step: int) -> int:
        """Return the epoch of a step."""
        return 0 if self.per_epoch is None else step // self.per_epoch

    def end_of_epoch(self, step: int) -> int | None:
        """Return the first step of the next epoch; None if there is none."""
        return None if self.per_epoch is None else (self.epoch_of(step) + 1) * self.per_epoch

    def span(self, step: int) -> tuple[int, int]:
        """Return the first position of a step, and where it ends, when epochs follow each other."""
        if self.length is None or self.per_epoch is None:
            return step * self.batch_size, (step + 1) * self.batch_size
        epoch, place = divmod(step, self.per_epoch)
        start = epoch * self.length + place * self.batch_size
        return start, min(start + self.batch_size, (epoch + 1) * self.length)

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
        """Return the positions of one rank: the shares of all ranks, in order, make the step."""
        start, stop = self.span(step)
        count = stop - start
        return start + rank * count // world, start + (rank + 1) * count // world

    def step_at(self, position: int) -> int:
        """Return the step that begins at a position.

        Raises:
            ValueError: None begins there.
        """
        length, per_epoch = self.length, self.per_epoch
        if length is None or per_epoch is None:
            step, rest = divmod(position, self.batch_size)
        else:
            epoch, place = divmod(position, length)
            step, rest = divmod(place, self.batch_size)
            rest = rest or step >= per_epoch
            step += epoch * per_epoch
        if rest:
            order = "order" if length is None else "order.repeat()"
            message = (
                f"no batch of {self.batch_size} begins at position {position}; with this batch "
                f"size, Loader({order}.skip({position}), ...) goes on there"
            )
            raise ValueError(message)
        return step
