"""The interface of sources, which hold the rows of a data set."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.plan import Plan
from ingot.dataset.spec import Spec
from ingot.records import Verification
from ingot.records.indices import Rows

Row: TypeAlias = dict[str, Any]
Elements: TypeAlias = tuple[int | None, int | None, int | None]
"""Start, stop and step in a sequence, as in a slice."""

ALL: Elements = (None, None, None)

Picks: TypeAlias = Sequence[Elements] | None
"""The elements of a sequence to read in each of several rows; None for all."""


class Source(Protocol):
    """Rows by number, from 0. Several threads may use a source at the same time.

    Rows and batches are flat dicts with the full names of fields.
    """

    @property
    def spec(self) -> Spec:
        """The fields and their types."""

    @property
    def paths(self) -> Sequence[str]:
        """The files that contain the rows."""

    @property
    def path(self) -> str:
        """The name of the source in errors: the directory, pattern or file that was opened."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the rows."""

    @property
    def nbytes(self) -> int:
        """The size of the files."""

    @property
    def others(self) -> Sequence[str]:
        """The names of other contents of the files."""

    @property
    def identity(self) -> str:
        """What tells the content of the files from others; copies of them have the same.

        It is computed when it is first asked for.
        """

    @property
    def closed(self) -> bool:
        """Whether the files are closed."""

    def __len__(self) -> int: ...

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row; elements apply only to sequences."""

    def plan(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows, as stacked arrays where possible."""

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return which fields a row has; for a sequence, the range of its elements."""

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field.

        Raises:
            TypeError: The values of the field are not single numbers.
        """

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows; 0 where it is missing."""

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together in a scan: at first, and at most."""

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for an optional field."""

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
        """Verify every checksum."""

    def close(self) -> None:
        """Close the files. A second call does nothing."""


@runtime_checkable
class Storing(Protocol):
    """A source that can return values as they are stored."""

    def raw(self, names: Collection[str] | None = None) -> Source:
        """Return the same rows with fields that are not numbers as bytes.

        Args:
            names: The fields; None for all.

        Raises:
            TypeError: The format has either all fields as bytes or none.
        """
