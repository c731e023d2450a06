"""How far a build is."""

from collections.abc import Iterable, Sequence

from ingot.dataset.build.maker import Task
from ingot.dataset.write.journal import Chunk, Journal
from ingot.records.progress import Meter, Progress


class Tally:
    """The rows and bytes made so far, including chunks in progress.

    Args:
        journal: The chunks that are finished.
        progress: As for `ingot.build`.
        label: The beginning of each line.
        total: The number of inputs, if it is known.
    """

    def __init__(self, journal: Journal, progress: Progress, label: str, total: int | None) -> None:
        self._made = [0, 0, 0]
        for chunk in journal.chunks.values():
            self.add(chunk)
        self._meter = Meter(progress, label, total, done=self._made[2], rows=self._made[0])

    def add(self, chunk: Chunk) -> None:
        """Count a finished chunk."""
        rows, nbytes = (
            sum(getattr(one, what) for one in chunk.shards) for what in ("rows", "nbytes")
        )
        for k, number in enumerate((rows, nbytes, chunk.inputs)):
            self._made[k] += number

    def tell(self, busy: Iterable[tuple[Task, Sequence[int]]]) -> None:
        """Report progress."""
        rows, nbytes, inputs = self._made
        for task, state in busy:
            if state[0] >= task.first:
                rows, nbytes = rows + state[1], nbytes + state[2]
                inputs += state[0] - task.first
        self._meter.update(rows, nbytes, inputs)

    def finish(self) -> None:
        """Report the end."""
        self._meter.finish(*self._made)
