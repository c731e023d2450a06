"""`ingot version`: the version of Ingot, and of the formats that it reads."""

import platform

import numpy as np

from ingot._core import __version__
from ingot.cli.options import AsJson, write_json
from ingot.cli.text import line
from ingot.formats.table import FORMATS


def version(as_json: AsJson = False) -> None:
    """Print the version of Ingot, of Python and of numpy."""
    about = {
        "ingot": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "reads": [one.name for one in FORMATS],
    }
    if as_json:
        write_json(about)
    else:
        line(f"ingot {__version__}, Python {about['python']}, numpy {about['numpy']}")
