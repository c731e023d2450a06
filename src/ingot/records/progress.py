"""Progress of a long task, on standard error."""

import sys
import time
from collections.abc import Callable
from typing import TypeAlias

from ingot.errors import printable

Report: TypeAlias = Callable[[int, int], object]
Progress: TypeAlias = Report | bool | None

_PAUSE_S = 0.2
_PAUSE_PLAIN_S = 10.0
_WIDTH = 24
_MINUTE = 60
_UNIT = 1000


class Line:
    """One line on standard error: updated in place on a terminal, else repeated now and then.

    Args:
        is_quick: Whether it is due as often as on a terminal, wherever it goes.

    Attributes:
        is_terminal: Whether standard error is a terminal.
    """

    def __init__(self, *, is_quick: bool = False) -> None:
        self.is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._pause = _PAUSE_S if is_quick or self.is_terminal else _PAUSE_PLAIN_S
        self._next = time.monotonic() + self._pause

    def is_due(self) -> bool:
        """Whether the last time was long enough ago; the next pause then begins."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self._pause
        return True

    def write(self, text: str, *, is_last: bool) -> None:
        """Write the line."""
        text = f"\r{text}\x1b[K" if self.is_terminal else text
        sys.stderr.write(text + "\n" * (is_last or not self.is_terminal))
        sys.stderr.flush()


def reporter(progress: Progress, verb: str, noun: str) -> Report | None:
    """Return the function to call with the work done and the total; None for no reports.

    Args:
        progress: Such a function, or True for a line on standard error.
        verb: What was done, such as "verified".
        noun: What it was done to, such as "records".
    """
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return None
    line = Line()

    def write(done: int, total: int) -> None:
        if line.is_due() or done >= total:
            line.write(f"{verb} {done:,} of {total:,} {noun}", is_last=done == total)

    return write


class Meter:
    """Reports rows, bytes and rate.

    Args:
        progress: True for a line on standard error, or a function that takes rows and bytes,
            called several times a second and at the end.
        label: The beginning of each line.
        total: The number of inputs, if there are inputs and it is known.
        done: The number of inputs that are already done.
        rows: The number of rows made from those.

    Attributes:
        is_on: Whether there is anything to report to.
    """

    def __init__(
        self, progress: object, label: str, total: int | None = None, done: int = 0, rows: int = 0
    ) -> None:
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            message = f"progress must be True or a function of rows and bytes, got {progress!r:.50}"
            raise TypeError(message)
        self._call: Report | None = progress if callable(progress) else None
        self.is_on = bool(progress)
        self._label = printable(label)
        self._total = total
        self._skipped = done
        self._begun = rows
        self._began = time.monotonic()
        self._line = Line(is_quick=self._call is not None)

    def update(self, rows: int, nbytes: int, inputs: int | None = None) -> None:
        """Report progress, unless the last report was just now."""
        if self.is_on and self._line.is_due():
            self._tell(rows, nbytes, inputs, is_last=False)

    def finish(self, rows: int, nbytes: int, inputs: int | None = None) -> None:
        """Report the end."""
        if self.is_on:
            self._tell(rows, nbytes, inputs, is_last=True)
            self.is_on = False

    def _tell(self, rows: int, nbytes: int, inputs: int | None, *, is_last: bool) -> None:
        if self._call is not None:
            self._call(rows, nbytes)
        else:
            text = self._text(rows, nbytes, inputs, is_last=is_last)
            self._line.write(text, is_last=is_last)

    def _text(self, rows: int, nbytes: int, inputs: int | None, *, is_last: bool) -> str:
        seconds = max(time.monotonic() - self._began, 1e-9)
        words = [f"{rows:,} rows", f"{(rows - self._begun) / seconds:,.0f}/s", _size(nbytes)]
        if inputs is not None and self._total:
            share = min(1.0, inputs / self._total)
            words.insert(0, f"{inputs:,} of {self._total:,} inputs {share:.0%}")
            if self._line.is_terminal:
                filled = round(share * _WIDTH)
                words.insert(0, f"[{'#' * filled}{'.' * (_WIDTH - filled)}]")
            if inputs > self._skipped and not is_last:
                left = (self._total - inputs) * seconds / (inputs - self._skipped)
                words.append(f"{duration(left)} left")
        elif inputs is not None:
            words.insert(0, f"{inputs:,} inputs")
        return f"{self._label}: {', '.join(words)}" + f", {duration(seconds)}" * is_last


def _size(nbytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < _UNIT:
            return f"{nbytes:.3g} {unit}"
        nbytes /= _UNIT
    return f"{nbytes:,.1f} TB"


def duration(seconds: float) -> str:
    """Return a time as hours, minutes and seconds."""
    minutes, seconds = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
