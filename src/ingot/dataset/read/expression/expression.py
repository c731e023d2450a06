"""A condition on the fields of rows, written as text."""

from collections.abc import Iterator

import numpy as np

from ingot.dataset.read.expression.columns import Columns
from ingot.dataset.read.expression.text import Text
from ingot.dataset.read.expression.tree import Tree
from ingot.dataset.read.expression.value import Truths, truths
from ingot.dataset.read.selection import Selection


class Expression:
    """A condition such as `label == 3 and len(frames) > 10`.

    The syntax is that of Python, of which it has a small part; Python never evaluates it. It can
    be used for any number of data sets, by several threads.

    Args:
        text: The condition.

    Raises:
        TypeError: It is not text.
        ValueError: It is not an expression; notes of the error show where.

    Attributes:
        text: The condition.
        names: The names in it, of fields, of members of JSON, or `row`.
    """

    def __init__(self, text: str) -> None:
        self._tree = Tree(Text(text))
        self.text = text
        self.names = tuple(dict.fromkeys(use.name for use in self._tree.uses))

    def scan(
        self, selection: Selection, rows: range | None = None
    ) -> Iterator[tuple[range, Truths]]:
        """Yield which rows meet the condition, some rows at a time, as they are read.

        Only the columns that are named are read. If the index has all of them, a block is a
        million rows; else it has at most 65,536, and a few megabytes.

        Args:
            selection: The rows and fields.
            rows: Positions in the selection to look at; None for all.

        Yields:
            Positions, and a boolean for each. If there are no rows, one empty block.

        Raises:
            KeyError: There is no such field, or no row has a member of JSON that is named.
            TypeError: A field cannot be used like this, or values cannot be compared.
        """
        wanted = range(len(selection)) if rows is None else rows
        for places, block in Columns(self._tree, selection).blocks(wanted):
            with np.errstate(all="ignore"):
                chosen = truths(self._tree.evaluate(block), len(places))
            yield places, chosen

    def mask(self, selection: Selection) -> Truths:
        """Return for each row whether it meets the condition.

        Raises:
            KeyError, TypeError: As `scan`.
        """
        found = np.zeros(len(selection), np.bool_)
        for places, chosen in self.scan(selection):
            found[places.start : places.stop] = chosen
        return found
