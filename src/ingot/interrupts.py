"""What Ctrl-C does while the command is loaded.

Until `end_quietly` runs, Ctrl-C prints a traceback. So this loads only what Python has in it or
has loaded already.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys

EXIT_CODE = 130
"""What a shell makes of SIGINT."""


def is_command() -> bool:
    """Return whether this process was started as `ingot` or `python -m ingot`."""
    started = sys.orig_argv[1:]
    if "-m" in started and sys.argv[:1] == ["-m"]:
        return started[started.index("-m") + 1 :][:1] == ["ingot"]
    script = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 -- it loads fast
    return script in {"ingot", "ingot.exe"}


def end_quietly() -> None:
    """Have Ctrl-C end the process, unless it is ignored or somebody else's to handle."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _end)


def raise_again() -> None:
    """Have Ctrl-C raise KeyboardInterrupt as usual."""
    if _signal.getsignal(_signal.SIGINT) is _end:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def _end(*_: object) -> None:
    os._exit(EXIT_CODE)
