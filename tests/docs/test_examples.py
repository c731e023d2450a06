"""What `make demo` shows is true."""

import re
import subprocess
import sys

from tests.support import ROOT

EXAMPLES = ROOT / "examples"


def test_the_training_that_is_killed_twice_ends_with_the_same_weights():
    outcome = subprocess.run(
        [sys.executable, str(EXAMPLES / "resume.py")],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert len(re.findall(r"killed after step \d+, to resume at step \d+", outcome.stdout)) == 2
    assert "batches with the same bytes: 120 of 120" in outcome.stdout
    weights = re.search(r"final weights: (\w+) without a stop, (\w+) with two", outcome.stdout)
    assert weights[1] == weights[2]
