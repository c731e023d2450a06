"""A progress line for a loop over a loader."""

from ingot.loader.steps import Steps
from ingot.loader.timing import LoaderStats
from ingot.records.progress import Line, duration


class Meter:
    """Writes a line on standard error: the step, the rate, and how much of the time was waited.

    Args:
        steps: The steps of the loader.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._line = Line()
        self._is_begun = False
        self._from = LoaderStats()

    def update(self, step: int, stats: LoaderStats) -> None:
        """Write the line after a step, unless it was written just now."""
        if self._line.is_due():
            self._is_begun = True
            self._line.write(self._text(step, stats), is_last=False)

    def finish(self, step: int, stats: LoaderStats) -> None:
        """End the line: the last step of an epoch was `step`."""
        if self._is_begun:
            self._line.write(self._text(step, stats), is_last=True)
        self._is_begun = False
        self._from = stats

    def _text(self, step: int, stats: LoaderStats) -> str:
        seconds = max(stats.elapsed_s - self._from.elapsed_s, 1e-9)
        batches = stats.batches - self._from.batches
        rate = (stats.samples - self._from.samples) / seconds
        waited = (stats.wait_s - self._from.wait_s) / seconds
        count = self._steps.per_epoch
        if count is None:
            words = [f"step {step:,}"]
        else:
            place = step % count + 1
            words = [
                f"epoch {self._steps.epoch_of(step)}",
                f"step {place:,} of {count:,} {place / count:.0%}",
            ]
        words += [f"{rate:,.0f} samples/s", f"waited {min(waited, 1):.0%}"]
        if count is not None and place < count and batches:
            words.append(f"{duration((count - place) * seconds / batches)} left")
        return ", ".join(words)
