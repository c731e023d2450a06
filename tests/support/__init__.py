"""What tests of several rooms share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
# Programs that tests start, to break something under them.
FAULTS = ROOT / "tests" / "support" / "faults"
