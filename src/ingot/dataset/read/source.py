"""The interface of sources, which hold the rows of a data set."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot.dataset.read.plan import Plan, read
from ingot.dataset.spec import Spec
from ingot.records import Verification

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = range | npt.NDArray[np.int64]
Indices: TypeAlias = Iterable[SupportsIndex] | npt.NDArray[np.integer[Any]]
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
        """The name of the source in errors: a directory, or the first file."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the rows."""

    @property
    def nbytes(self) -> int:
        """The size of the files."""

    @property
    def others(self) -> Sequence[str]:
        """The names of other contents of the files."""

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
        if isinstance(self.rows, range):
            if self.rows.start == 0 and self.rows.step == 1:
                return np.asarray(places, np.int64)
            return self.rows.start + np.asarray(places, np.int64) * self.rows.step
        return self.rows[np.asarray(places, np.int64)]

    def number(self, index: SupportsIndex) -> int:
        """Return the row number for an index; a negative index counts from the end.

        Raises:
            IndexError: It is out of range.
        """
        try:
            return int(self.rows[operator.index(index)])
        except IndexError:
            message = f"{self.path}: index {index} is out of range for {len(self)} rows"
            raise IndexError(message) from None

    def resolve(self, indices: Indices) -> npt.NDArray[np.int64]:
        """Return the row numbers for several indices.

        Raises:
            IndexError: One is out of range.
            TypeError: They are not integers.
        """
        array = _array(indices)
        if array.dtype == np.int64 and array.view(np.uint64).max(initial=0) < len(self):
            return self.numbers(np.asarray(array, np.int64))
        bad = (array < -len(self)) | (array >= len(self))
        if bad.any():
            self.number(int(array[bad.argmax()]))
        places = array.astype(np.int64, copy=False)
        return self.numbers(np.where(places < 0, places + len(self), places))


def _array(indices: Indices) -> npt.NDArray[np.integer[Any]]:
    if type(indices) is np.ndarray and indices.dtype.kind in "iu" and indices.ndim == 1:
        return indices
    if isinstance(indices, str | bytes | bytearray | set | frozenset | Mapping):
        raise TypeError(_no_indices(indices))
    if not isinstance(indices, Sequence) and not hasattr(indices, "__array__"):
        if not isinstance(indices, Iterable):
            raise TypeError(_no_indices(indices))
        indices = list(indices)
    array = np.asarray(indices)
    if array.dtype == np.bool_:
        message = "a boolean mask is not an index array: ds.where(mask) selects its rows"
        raise TypeError(message)
    if array.shape == (0,):
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        array = _integers(array)
    if array.ndim != 1:
        message = f"an index array must have one dimension, got {array.ndim}"
        raise ValueError(message)
    return array


def _integers(array: npt.NDArray[Any]) -> npt.NDArray[np.integer[Any]]:
    try:
        return np.array([operator.index(index) for index in array])
    except TypeError:
        raise TypeError(_no_indices(array)) from None


def _no_indices(found: object) -> str:
    if isinstance(found, str):
        return (
            f"indices must be integers, got the name of a field; "
            f"select({found!r}) selects that field, column({found!r}) returns its values"
        )
    return (
        "indices are integers, slices, or sequences or arrays of integers, "
        f"not {type(found).__name__}"
    )
