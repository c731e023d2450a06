"""How a loader spends its time: figures, and a line of progress."""

from dataclasses import dataclass

from ingot.loader.steps import Steps
from ingot.records.progress import Line, duration

_WAITS = 0.1
_WORDS = {
    "read_s": "reading and decoding",
    "transform_s": "the functions of map",
    "collate_s": "collating",
    "replace_s": "replacing samples that failed",
}


@dataclass(frozen=True, slots=True)
class LoaderStats:
    """How a loader has spent its time so far; `print` shows what the bottleneck is.

    The workers' seconds are those of all threads together.

    Attributes:
        batches: Batches that were handed out.
        samples: Samples in these batches.
        elapsed_s: Seconds from the first request to the last batch.
        wait_s: Seconds that the caller waited for batches.
        read_s: Seconds in which workers read, verified and decoded rows.
        transform_s: Seconds in which workers ran the functions of `map`.
        collate_s: Seconds in which workers collated samples and made tensors.
        replace_s: Seconds that batches took in which a sample failed, until it was replaced.
        replaced: Samples that were replaced in these batches.
    """

    __module__ = "ingot.loader"

    batches: int = 0
    samples: int = 0
    elapsed_s: float = 0.0
    wait_s: float = 0.0
    read_s: float = 0.0
    transform_s: float = 0.0
    collate_s: float = 0.0
    replace_s: float = 0.0
    replaced: int = 0

    @property
    def bottleneck(self) -> str:
        """What the bottleneck is, in a sentence."""
        if not self.batches:
            return "no batch was handed out yet"
        share = self.wait_s / self.elapsed_s if self.elapsed_s > 0 else 0.0
        waited = f"waited for data {share:.0%} of the time"
        if share < _WAITS:
            return f"the training loop is the bottleneck: it {waited}"
        work = {name: getattr(self, name) for name in _WORDS}
        name = max(work, key=lambda one: work[one])
        total = sum(work.values())
        part = work[name] / total if total > 0 else 0.0
        return (
            f"the loader is the bottleneck: the training loop {waited}, and workers spent "
            f"{part:.0%} of theirs in {_WORDS[name]}"
        )

    def __str__(self) -> str:
        batches = "1 batch" if self.batches == 1 else f"{self.batches:,} batches"
        return (
            f"{self.bottleneck} ({batches}, {self.samples:,} samples in "
            f"{self.elapsed_s:.3g} s: wait {self.wait_s:.3g} s, read {self.read_s:.3g} s, "
            f"transform {self.transform_s:.3g} s, collate {self.collate_s:.3g} s{self._replaced})"
        )

    @property
    def _replaced(self) -> str:
        if not self.replaced:
            return ""
        return f"; {self.replaced:,} samples replaced in {self.replace_s:.3g} s"


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
