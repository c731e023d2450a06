"""Progress of building an index."""

from ingot.errors import printable
from ingot.records.progress import Line, Report

_LARGE = 1 << 30


def index_progress(path: str) -> Report:
    """Return the function to call with the bytes done and the total.

    It writes a line to standard error now and then if there are many bytes.
    """
    line = Line()

    def report(done: int, total: int) -> None:
        if total >= _LARGE and (line.is_due() or done == total):
            share = f"{done / 1e9:,.1f} of {total / 1e9:,.1f} GB"
            line.write(f"{printable(path)}: indexed {share}", is_last=done == total)

    return report
