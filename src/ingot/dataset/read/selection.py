"""Some rows and some fields of a source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.plan import read
from ingot.dataset.read.source import Picks, Row, Source
from ingot.dataset.spec import Spec
from ingot.records.indices import Indices, Rows, number_at, numbers_at, resolve


@dataclass(frozen=True, slots=True)
class Selection:
    """Some rows and some fields of a source.

    Attributes:
        source: The source.
        names: The fields, in order.
        rows: The row numbers in the source, in order.
        spec: The fields and their types.
        path: The name of the source in errors.
    """

    source: Source
    names: tuple[str, ...]
    rows: Rows
    spec: Spec = field(init=False)
    path: str = field(init=False)

    def __post_init__(self) -> None:
        fields = self.source.spec.fields
        object.__setattr__(self, "spec", Spec({name: fields[name] for name in self.names}))
        object.__setattr__(self, "path", self.source.path)

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Row:
        """Read the wanted fields of rows, by their numbers in the source, in one go."""
        return read(self.source.plan(numbers, wanted))

    def numbers(self, places: Rows) -> npt.NDArray[np.int64]:
        """Return the row numbers in the source for positions in the selection."""
        return numbers_at(self.rows, places)

    def number(self, index: SupportsIndex) -> int:
        """Return the row number for an index; a negative index counts from the end.

        Raises:
            IndexError: It is out of range.
        """
        return number_at(self.rows, index, self.path)

    def resolve(self, indices: Indices) -> npt.NDArray[np.int64]:
        """Return the row numbers for several indices.

        Raises:
            IndexError: One is out of range.
            TypeError: They are not integers.
        """
        given: object = indices
        if isinstance(given, str):
            message = (
                "indices must be integers, got the name of a field; "
                f"select({given!r}) selects that field, column({given!r}) returns its values"
            )
            raise TypeError(message)
        return resolve(self.rows, indices, self.path)
