"""`ingot version`: the version of Ingot, and of the formats that it reads."""

import platform

import numpy as np

from ingot._core import __version__
from ingot.cli.options import AsJson, report
from ingot.formats.table import FORMATS


def version(as_json: AsJson = False) -> None:
    """Print the version of Ingot, of Python and of numpy."""
    about = {
        "ingot": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "reads": [one.name for one in FORMATS],
    }
    text = f"ingot {__version__}, Python {about['python']}, numpy {about['numpy']}"
    report(about, text, as_json=as_json)
