"""Progress of a long task, on standard error."""

import sys
import time
from collections.abc import Callable
from typing import TypeAlias

from ingot.errors import printable

Progress: TypeAlias = bool | Callable[[int, int], object] | None

_PAUSE_S = 0.2
_PAUSE_PLAIN_S = 10.0
_WIDTH = 24
_MINUTE = 60
_UNIT = 1000


class Meter:
    """Reports rows, bytes and rate: one updated line on a terminal, else a line now and then.

    Args:
        progress: True for standard error, or a function that takes rows and bytes, called
            several times a second and at the end.
        label: The beginning of each line.
        total: The number of inputs, if there are inputs and it is known.
        done: The number of inputs that are already done.
        rows: The number of rows made from those.
    """

    def __init__(
        self, progress: object, label: str, total: int | None = None, done: int = 0, rows: int = 0
    ) -> None:
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            message = f"progress must be True or a function of rows and bytes, got {progress!r:.50}"
            raise TypeError(message)
        self._call: Callable[[int, int], object] | None = progress if callable(progress) else None
        self._is_on = bool(progress)
        self._label = printable(label)
        self._total = total
        self._skipped = done
        self._begun = rows
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._pause = _PAUSE_S if self._call or self._is_terminal else _PAUSE_PLAIN_S
        self._began = self._next = time.monotonic()
        self._next += self._pause

    def update(self, rows: int, nbytes: int, inputs: int | None = None) -> None:
        """Report progress, unless the last report was just now."""
        if self._is_on and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._pause
            self._tell(rows, nbytes, inputs, is_last=False)

    def finish(self, rows: int, nbytes: int, inputs: int | None = None) -> None:
        """Report the end."""
        if self._is_on:
            self._tell(rows, nbytes, inputs, is_last=True)
            self._is_on = False

    def _tell(self, rows: int, nbytes: int, inputs: int | None, *, is_last: bool) -> None:
        if self._call is not None:
            self._call(rows, nbytes)
            return
        text = self._line(rows, nbytes, inputs, is_last=is_last)
        if self._is_terminal:
            text = f"\r{text}\x1b[K"
        if is_last or not self._is_terminal:
            text += "\n"
        sys.stderr.write(text)
        sys.stderr.flush()

    def _line(self, rows: int, nbytes: int, inputs: int | None, *, is_last: bool) -> str:
        seconds = max(time.monotonic() - self._began, 1e-9)
        words = [f"{rows:,} rows", f"{(rows - self._begun) / seconds:,.0f}/s", _size(nbytes)]
        if inputs is not None and self._total:
            share = min(1.0, inputs / self._total)
            words.insert(0, f"{inputs:,} of {self._total:,} inputs {share:.0%}")
            if self._is_terminal:
                filled = round(share * _WIDTH)
                words.insert(0, f"[{'#' * filled}{'.' * (_WIDTH - filled)}]")
            if inputs > self._skipped and not is_last:
                left = (self._total - inputs) * seconds / (inputs - self._skipped)
                words.append(f"{_time(left)} left")
        elif inputs is not None:
            words.insert(0, f"{inputs:,} inputs")
        return f"{self._label}: {', '.join(words)}" + f", {_time(seconds)}" * is_last


def _size(nbytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < _UNIT:
            return f"{nbytes:.3g} {unit}"
        nbytes /= _UNIT
    return f"{nbytes:,.1f} TB"


def _time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
