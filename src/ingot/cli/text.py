"""Text for a terminal: nothing in it can move the cursor, change colours or pose as markup."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ingot.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

_UNIT = 1000


def safe(text: str) -> str:
    """Return text with everything that is not printable escaped, line ends too."""
    return printable(text, kept="")


def size(nbytes: float) -> str:
    """Return a number of bytes for people: `12.3 MB`."""
    if nbytes < _UNIT:
        return f"{nbytes:.0f} B"
    for unit in ("kB", "MB", "GB"):
        nbytes /= _UNIT
        if nbytes < _UNIT:
            return f"{nbytes:.3g} {unit}"
    return f"{nbytes / _UNIT:,.1f} TB"


def line(text: str, style: str = "") -> None:
    """Print a line; it has a style only on a terminal."""
    if sys.stdout.isatty():
        from rich.text import Text  # noqa: PLC0415

        _console().print(Text(safe(text), style=style), soft_wrap=True)
    else:
        sys.stdout.write(f"{safe(text)}\n")


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()
) -> None:
    """Print a table.

    Args:
        heads: The names of the columns.
        rows: The cells.
        right: The columns that are aligned to the right.
    """
    cells = [[safe(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(heads, cells, right)
        return
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for row in [heads, *cells]:
        each = zip(row, widths, range(len(heads)), strict=True)
        padded = [cell.rjust(n) if k in right else cell.ljust(n) for cell, n, k in each]
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def _rich_table(heads: Sequence[str], rows: list[list[str]], right: Sequence[int]) -> None:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, head in enumerate(heads):
        justify: Any = "right" if place in right else "left"
        shown.add_column(Text(head), justify=justify, overflow="fold")
    for cells in rows:
        shown.add_row(*map(Text, cells))
    _console().print(shown)


def _console() -> "Console":
    """Return standard output as rich has it, without markup: data may look like it."""
    from rich.console import Console  # noqa: PLC0415 -- only a terminal needs it

    return Console(markup=False, highlight=False, emoji=False)
