"""Rows in Ingot files."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot._core import read_plans
from ingot.cached import cached_property
from ingot.codecs import codec_of
from ingot.dataset.read.decoding import RowPlan
from ingot.dataset.read.identity import identity_of
from ingot.dataset.read.ingot_plan import IngotPlan
from ingot.dataset.read.iteration import ROWS
from ingot.dataset.read.plan import Plan
from ingot.dataset.read.source import ALL, Elements, Picks, Row
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError
from ingot.records import Damage, Verification
from ingot.records.indices import Rows

_BYTES = codec_of("bytes")

_Latest: TypeAlias = tuple[Mapping[str, Elements], RowPlan, Sequence[Elements] | None]
"""What was wanted of the last row, and how it was read."""


class Origin(Protocol):
    """Where the files of a data set come from."""

    @property
    def path(self) -> str:
        """Its name in errors: the directory, or the first file."""

    @property
    def paths(self) -> Sequence[str]:
        """The files."""

    def metadata_json(self, native: NativeRows) -> str:
        """Return the metadata of the data set as JSON."""

    def nbytes(self, native: NativeRows) -> int:
        """Return the size of the files."""

    def identity(self, native: NativeRows) -> str:
        """Return what tells the content of the files from others; copies have the same."""

    def again(
        self, native: NativeRows, *, allow_pickle: bool
    ) -> tuple[Callable[..., "IngotSource"], tuple[Any, ...]]:
        """Return what opens the same files again in another process, and its arguments."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files that the user lists.

    Attributes:
        paths: Their paths.
        name: What errors call them: the directory, pattern or file that was opened.
        partial: Whether to read the committed rows of unfinished files.
    """

    paths: Sequence[str]
    name: str
    partial: bool

    @property
    def path(self) -> str:
        """The directory, pattern or file that was opened."""
        return self.name

    def metadata_json(self, native: NativeRows) -> str:
        """Return the metadata of the first file."""
        return native.metadata_json()

    def nbytes(self, native: NativeRows) -> int:
        """Return the size of the files."""
        return native.figures()[1]

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
        files.paths, files.name, partial=files.partial, allow_pickle=allow_pickle
    )
    if not files.partial and files.identity(opened.native) != identity:
        message = f"{files.path}: the files were replaced since the data set was pickled"
        raise FormatError(message, files.path)
    return opened


class IngotSource:
    """Rows of Ingot files that have the same fields, concatenated.

    Attributes:
        native: The files.
        spec: The fields and their types.
    """

    others: Sequence[str] = ()

    def __init__(
        self,
        native: NativeRows,
        spec: Spec,
        origin: Origin,
        *,
        allow_pickle: bool,
        raw: frozenset[str] = frozenset(),
    ) -> None:
        self.native = native
        self.spec = spec
        self._origin = origin
        self._allow_pickle = allow_pickle
        self._raw = raw
        self._metadata = origin.metadata_json(native)
        self.path = origin.path
        self._stored_fields = spec.stored()
        self._places = {name: k for k, (name, *_) in enumerate(self._stored_fields)}
        self._latest: _Latest = ({}, RowPlan((), self._places, self.path), None)

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
            message = f"{first}: {error}"
            raise FormatError(message, first) from error
        if found.stored() != fields:
            message = f"{first}: the fields of the file differ from {found!r}"
            raise FormatError(message, first)
        return cls(native, found, origin, allow_pickle=allow_pickle)

    def __reduce__(self) -> tuple[Any, ...]:
        opener, given = self._origin.again(self.native, allow_pickle=self._allow_pickle)
        return _again, (opener, given, self._raw)

    @property
    def paths(self) -> Sequence[str]:
        """The files."""
        return self._origin.paths

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
        return plan.read(self.native, number, elements)

    def _present(self, number: int, fields: Iterable[Field]) -> dict[str, bool]:
        return {
            one.name: not one.is_optional
            or self.native.column(self._places[f"{one.name}?"], [number]) != b"\0"
            for one in fields
        }

    def plan(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        fields = self._fields(wanted)
        return IngotPlan(self.native, self.path, self._places, numbers, fields=fields, picks=wanted)

    def read_packed(
        self, names: Sequence[str], numbers: npt.NDArray[np.int64]
    ) -> list[tuple[memoryview | bytearray, bytes, bytes | None]]:
        """Return the values of fields in rows as they are stored, after verification.

        Returns:
            For each field the concatenated values, their offsets, and for a sequence their
            counts.
        """
        asks = [(self._places[name], None) for name in names]
        found = []
        (read,) = read_plans([(self.native, numbers, asks)])
        for name, (data, offsets, counts) in zip(names, read, strict=True):
            _, _, width, _ = self._stored_fields[self._places[name]]
            ends = np.arange(len(numbers) + 1, dtype=np.int64) * (width or 0)
            found.append((data, ends.tobytes() if offsets is None else offsets, counts))
        return found

    def raw(self, names: Iterable[str] | None = None) -> "IngotSource":
        """Return the same rows with fields as bytes.

        Args:
            names: The fields; None for all. Numbers stay what they are.
        """
        chosen = frozenset(self.spec if names is None else names)
        fields = {
            name: one
            if one.kind == "column" or name not in chosen
            else replace(one, codec=_BYTES, is_sequence=one.kind == "sequence")
            for name, one in self.spec.fields.items()
        }
        return IngotSource(
            self.native,
            Spec(fields),
            self._origin,
            allow_pickle=self._allow_pickle,
            raw=chosen,
        )

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return which fields a row has."""
        fields = self._fields(names)
        present = self._present(number, fields)
        found: dict[str, bool | range] = {}
        for one in fields:
            found[one.name] = present[one.name]
            if one.is_sequence and present[one.name]:
                found[one.name] = range(int(self._counts(np.array([number]), one)[0]))
        return found

    def _counts(self, numbers: npt.NDArray[np.int64], field: Field) -> npt.NDArray[np.int64]:
        place = self._places[field.name]
        if field.kind == "sequence":
            return np.frombuffer(self.native.count(numbers, place), np.int64)
        nbytes = np.frombuffer(self.native.sizes(numbers, place), np.int64)
        return nbytes // (field.codec.dtype.itemsize if field.codec.dtype else 1)

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field, from the index alone."""
        field = self.spec.fields[name]
        if field.kind != "column":
            message = f"{self.path}: field {name!r} is {field.type}, expected one number per row"
            raise TypeError(message)
        return np.frombuffer(self._column(name, numbers), field.codec.dtype)

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for an optional field, from the index alone."""
        return np.frombuffer(self._column(f"{name}?", numbers), np.bool_)

    def _column(self, name: str, numbers: Rows) -> bytearray:
        is_all = isinstance(numbers, range) and numbers == range(len(self))
        return self.native.column(self._places[name], None if is_all else numbers)

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows, from the index alone."""
        return self._counts(np.asarray(numbers, np.int64), self.spec.fields[name])

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together."""
        del names
        return ROWS

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
        """Verify every checksum of the files."""
        rows, damaged = self.native.check(progress)
        return Verification(rows, [Damage(*damage) for damage in damaged])

    @property
    def closed(self) -> bool:
        """Whether the files are closed."""
        return self.native.closed

    def close(self) -> None:
        """Close the files."""
        self.native.close()


def _again(
    opener: Callable[..., IngotSource], given: tuple[Any, ...], raw: frozenset[str]
) -> IngotSource:
    try:
        opened = opener(*given)
    except FileNotFoundError as error:
        error.add_note(
            "the data set was compacted, replaced or moved since it was pickled: open it again"
        )
        raise
    return opened.raw(raw) if raw else opened
