"""How the tests start the command line."""

import os
import sys

COMMAND = [sys.executable, "-m", "ingot"]


def environment(**more):
    return {**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", **more}
