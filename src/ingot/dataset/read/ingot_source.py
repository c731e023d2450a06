"""Rows in Ingot files."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot._core import read_plans
from ingot.dataset.read.ingot_plan import IngotPlan, RowPlan, Unpacking
from ingot.dataset.read.plan import Plan
from ingot.dataset.read.source import (
    ALL,
    Elements,
    Numbers,
    Picks,
    Progress,
    Row,
    Source,
    Stored,
    identity_of,
)
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError
from ingot.locks import cached_property
from ingot.records import Damage, Stats, Verification
from ingot.records.indices import Rows

_Latest: TypeAlias = tuple[Mapping[str, Elements], RowPlan, Sequence[Elements] | None]
"""What was wanted of the last row, and how it was read."""


class Origin(Protocol):
    """Where the files of a data set come from."""

    if TYPE_CHECKING:  # Attributes or properties.

        @property
        def path(self) -> str:
            """Its name in errors: the directory, or the first file."""

        @property
        def paths(self) -> Sequence[str]:
            """The files."""

        @property
        def format(self) -> str:
            """The name of their format."""

    @property
    def is_checked(self) -> bool:
        """Whether checksums in the files cover every value."""
        return True

    def metadata_json(self, native: NativeRows) -> str:
        """Return the metadata of the data set as JSON: by default, those of the first file."""
        return native.metadata_json()

    def nbytes(self, native: NativeRows) -> int:
        """Return the size of the files."""
        return native.figures()[1]

    def identity(self, native: NativeRows) -> str:
        """Return what tells the content of the files from others; copies have the same."""

    def again(
        self, native: NativeRows, *, allow_pickle: bool
    ) -> tuple[Callable[..., "IngotSource"], tuple[Any, ...]]:
        """Return what opens the same files again in another process, and its arguments."""


@dataclass(frozen=True, slots=True)
class Files(Origin):
    """Files that the user lists.

    Attributes:
        paths: Their paths.
        path: What errors call them: the directory, pattern or file that was opened.
        partial: Whether to read the committed rows of unfinished files.
    """

    paths: Sequence[str]
    path: str
    partial: bool
    format: ClassVar[str] = "ingot"

    def identity(self, native: NativeRows) -> str:
        """Return what tells these files from others, and from their successors."""
        rows = [str(len(native))] if self.partial else map(str, native.row_counts())
        return identity_of([*native.ids(), *rows])

    def again(
        self, native: NativeRows, *, allow_pickle: bool
    ) -> tuple[Callable[..., "IngotSource"], tuple[Any, ...]]:
        """Return what opens the same files again."""
        return _reopen, (self, self.identity(native), allow_pickle)


def _reopen(files: Files, identity: str, allow_pickle: bool) -> "IngotSource":  # noqa: FBT001
    """Open the files that were pickled.

    Raises:
        FormatError: They were replaced.
    """
    opened = IngotSource.open(
        files.paths, files.path, partial=files.partial, allow_pickle=allow_pickle
    )
    if not files.partial and files.identity(opened.native) != identity:
        message = f"{files.path}: the files were replaced since the data set was pickled"
        raise FormatError(message, files.path)
    return opened


class IngotSource(Source):
    """Rows of Ingot files that have the same fields, concatenated.

    Attributes:
        native: The files.
        spec: The fields and their types.
    """

    spec: Spec
    path: str

    def __init__(
        self, native: NativeRows, spec: Spec, origin: Origin, *, allow_pickle: bool
    ) -> None:
        self.native = native
        self.spec = spec
        self._origin = origin
        self._allow_pickle = allow_pickle
        self._metadata = origin.metadata_json(native)
        self.path = origin.path
        self._stored_fields = spec.stored()
        self._places = {name: k for k, (name, *_) in enumerate(self._stored_fields)}
        self._latest = self._nothing()

    @classmethod
    def open(
        cls,
        paths: Sequence[str],
        name: str | None = None,
        *,
        partial: bool = False,
        allow_pickle: bool = False,
    ) -> Self:
        """Open files; see `ingot.open`.

        Args:
            paths: The files.
            name: What errors call them; by default as the first one.
            partial: Whether to read the committed rows of unfinished files.
            allow_pickle: Whether to read fields that are stored as pickle.

        Raises:
            FormatError: They are not files of a data set, or their fields differ.
        """
        native = NativeRows(paths, partial)
        files = Files(list(paths), name or paths[0], partial)
        return cls.of(native, paths[0], files, allow_pickle=allow_pickle)

    @classmethod
    def of(
        cls,
        native: NativeRows,
        first: str,
        origin: Origin,
        *,
        allow_pickle: bool,
        spec: Spec | None = None,
    ) -> Self:
        """Return the rows of files that are open.

        Args:
            native: The files.
            first: The path of the first one.
            origin: Where they come from.
            allow_pickle: Whether to read fields that are stored as pickle.
            spec: Their fields; None for those that the files name.

        Raises:
            FormatError: The fields differ from these.
        """
        fields = native.fields()
        try:
            found = spec or Spec.of_stored(fields, allow_pickle=allow_pickle)
        except ValueError as error:
            raise FormatError(f"{first}: {error}", first) from error
        if found.stored() != fields:
            raise FormatError(f"{first}: the fields of the file differ from {found!r}", first)
        return cls(native, found, origin, allow_pickle=allow_pickle)

    def _nothing(self) -> _Latest:
        return {}, RowPlan((), self._places, self.path), None

    def again(self) -> tuple[Callable[..., Source], tuple[Any, ...]]:
        """Return what opens the same files in another process."""
        return self._origin.again(self.native, allow_pickle=self._allow_pickle)

    def raw(self, names: Collection[str] | None = None) -> Self:
        """Return the same rows with fields that are not numbers as bytes."""
        found = super().raw(names)
        found._latest = self._nothing()  # noqa: SLF001 -- it decodes
        return found

    @property
    def paths(self) -> Sequence[str]:
        """The files."""
        return self._origin.paths

    @property
    def format(self) -> str:
        """The name of the format."""
        return self._origin.format

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the data set."""
        loaded: dict[str, Any] = json.loads(self._metadata)
        return loaded

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        return self._origin.nbytes(self.native)

    @cached_property
    def identity(self) -> str:
        """What tells the content of the files from others."""
        return self._origin.identity(self.native)

    def __len__(self) -> int:
        return len(self.native)

    def _fields(self, names: Iterable[str]) -> list[Field]:
        return [self.spec.fields[name] for name in names]

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row."""
        latest, plan, elements = self._latest
        if latest is not wanted:
            if plan.names != tuple(wanted):
                plan = RowPlan(self._fields(wanted), self._places, self.path)
            elements = None if all(one == ALL for one in wanted.values()) else [*wanted.values()]
            self._latest = (wanted, plan, elements)
        if elements is None:
            return self.native.read_row(number, plan.native, None)
        return plan.read(self.native, number, elements)

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        unpacking = Unpacking(self.path, numbers, self._fields(wanted), wanted)
        return IngotPlan(self.native, self._places, unpacking)

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return the values of fields in rows as they are stored, after verification."""
        asks = [(self._places[name], None) for name in names]
        found: list[Stored] = []
        (read,) = read_plans([(self.native, numbers, asks)])
        for name, (data, offsets, counts) in zip(names, read, strict=True):
            _, _, width, _ = self._stored_fields[self._places[name]]
            ends = np.arange(len(numbers) + 1, dtype=np.int64) * (width or 0)
            found.append((data, ends.tobytes() if offsets is None else offsets, counts))
        return found

    def _numbers(self, name: str, numbers: Rows, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return the numbers that are stored in a column, from the index alone."""
        place = self._places[name]
        if isinstance(numbers, range) and numbers.step == 1:
            found = self.native.column(place, numbers.start, numbers.start + len(numbers))
        else:
            found = self.native.values(np.asarray(numbers, np.int64), place)
        return np.frombuffer(found, dtype)

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows, from the index alone."""
        rows, field = np.asarray(numbers, np.int64), self.spec.fields[name]
        if field.kind == "sequence":
            return np.frombuffer(self.native.count(rows, self._places[name]), np.int64)
        return self._sizes(rows, name) // (field.codec.dtype.itemsize if field.codec.dtype else 1)

    def _sizes(self, rows: Numbers, name: str) -> Numbers:
        return np.frombuffer(self.native.sizes(rows, self._places[name]), np.int64)

    @property
    def counts(self) -> Sequence[int]:
        """The number of rows in each file."""
        return [] if self.closed else self.native.row_counts()

    def stats(self) -> Stats:
        """Return figures about the files, from their directories alone."""
        return Stats(*self.native.figures())

    def field_bytes(self, rows: Numbers) -> Mapping[str, int]:
        """Return the size of fields before compression, from the index entries of a sample."""
        found: dict[str, int] = {}
        for name, field in self.spec.fields.items():
            if field.width is not None:
                found[name] = field.width * len(self)
            else:
                nbytes = float(self._sizes(rows, name).sum())
                found[name] = round(nbytes * len(self) / max(1, len(rows)))
        return found

    def verify(self, progress: Progress) -> Verification:
        """Verify every checksum of the files."""
        rows, damaged = self.native.check(progress)
        unchecked = () if self._origin.is_checked else tuple(self.spec)
        return Verification(rows, [Damage(*damage) for damage in damaged], unchecked)

    @property
    def closed(self) -> bool:
        """Whether the files are closed."""
        return self.native.closed

    def close(self) -> None:
        """Close the files."""
        self.native.close()
