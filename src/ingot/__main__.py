"""The command `ingot`, also as `python -m ingot`."""

import gc
import sys

from ingot.extras import requirement
from ingot.interrupts import EXIT_CODE, end_quietly, raise_again

_OBJECTS = 50_000
"""How many new objects to look for garbage after: loading modules makes many, and none is."""


def main() -> None:
    """Run the command line, or say how to install what it requires."""
    end_quietly()
    gc.set_threshold(_OBJECTS)
    try:
        with requirement("typer", "the command line"):
            from ingot.cli.app import run  # noqa: PLC0415 -- it requires an extra
    except ModuleNotFoundError as error:
        sys.exit(f"ingot: {error}")
    try:
        raise_again()
        code = run()
    except KeyboardInterrupt:
        sys.exit(EXIT_CODE)
    gc.freeze()  # Looking for garbage once more before the end takes a sixth of a short command.
    sys.exit(code)


if __name__ == "__main__":
    main()
