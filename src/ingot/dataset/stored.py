"""Rows in Ingot files."""

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ingot._core import Rows as NativeRows
from ingot.codecs import codec_of
from ingot.dataset.batch import Batch
from ingot.dataset.iteration import ROWS
from ingot.dataset.row import Plan
from ingot.dataset.source import Elements, Picks, Row, Rows
from ingot.dataset.spec import Field, Spec
from ingot.errors import FormatError
from ingot.records import Damage, Verification

_BYTES = codec_of("bytes")


class Stored:
    """Rows of Ingot files that have the same fields, concatenated."""

    others: Sequence[str] = ()

    def __init__(
        self,
        native: NativeRows,
        spec: Spec,
        paths: Sequence[str],
        *,
        allow_pickle: bool,
        folder: str | None = None,
        metadata: dict[str, Any] | None = None,
        partial: bool = False,
        is_raw: bool = False,
    ) -> None:
        self.spec = spec
        self._allow_pickle = allow_pickle
        self.paths = list(paths)
        self._native = native
        self._folder = folder
        self._metadata = native.metadata_json() if metadata is None else json.dumps(metadata)
        self._partial = partial
        self.path = folder or self.paths[0]
        self._stored_fields = spec.stored()
        self._places = {name: k for k, (name, *_) in enumerate(self._stored_fields)}
        self._is_raw = is_raw
        self._latest: tuple[tuple[str, ...], Plan] = ((), Plan((), self._places))

    @classmethod
    def open(
        cls,
        paths: Sequence[str],
        *,
        partial: bool = False,
        allow_pickle: bool = False,
        folder: str | None = None,
        metadata: dict[str, Any] | None = None,
        spec: Spec | None = None,
    ) -> Self:
        """Open files; see `ingot.open`.

        Args:
            paths: The files.
            partial: Whether to read the committed rows of unfinished files.
            allow_pickle: Whether to read fields that are stored as pickle.
            folder: The directory that they make up, if any.
            metadata: Their metadata; None for those in the first file.
            spec: Their fields; None for those that the files name.

        Raises:
            FormatError: They are not files of a data set, or their fields differ.
        """
        native = NativeRows(paths, partial)
        try:
            found = spec or Spec.of_stored(native.fields(), allow_pickle=allow_pickle)
        except ValueError as error:
            message = f"{paths[0]}: {error}"
            raise FormatError(message, paths[0]) from error
        if found.stored() != native.fields():
            message = f"{paths[0]}: the fields of the file differ from {found!r}"
            raise FormatError(message, paths[0])
        return cls(
            native,
            found,
            paths,
            allow_pickle=allow_pickle,
            folder=folder,
            metadata=metadata,
            partial=partial,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        again = functools.partial(
            Stored.open,
            allow_pickle=self._allow_pickle,
            folder=self._folder,
            metadata=self.metadata,
            partial=self._partial,
        )
        return (_raw if self._is_raw else _same), (again, self.paths, self._identity())

    def _identity(self) -> str:
        """Return what tells these files from others, and from their successors."""
        rows = [str(len(self))] if self._partial else map(str, self.row_counts)
        return hashlib.sha256(" ".join([*self.ids, *rows]).encode()).hexdigest()[:32]

    def check_identity(self, identity: str) -> None:
        """Refuse files that are not those that were pickled.

        Raises:
            FormatError: They were replaced.
        """
        if not self._partial and self._identity() != identity:
            message = f"{self.path}: the files were replaced since the data set was pickled"
            raise FormatError(message, self.path)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the data set."""
        loaded: dict[str, Any] = json.loads(self._metadata)
        return loaded

    @property
    def ids(self) -> list[str]:
        """The id of each file."""
        return self._native.ids()

    @property
    def row_counts(self) -> list[int]:
        """The number of rows of each file."""
        return self._native.row_counts()

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        return self._native.file_bytes()

    def __len__(self) -> int:
        return len(self._native)

    def _fields(self, names: Iterable[str]) -> list[Field]:
        return [self.spec.fields[name] for name in names]

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row."""
        names, plan = self._latest
        if names != tuple(wanted):
            names, plan = tuple(wanted), Plan(self._fields(wanted), self._places)
            self._latest = (names, plan)
        return plan.read(self._native, self.path, number, list(wanted.values()))

    def _present(self, number: int, fields: Iterable[Field]) -> dict[str, bool]:
        return {
            one.name: not one.is_optional
            or self._native.column(self._places[f"{one.name}?"], [number]) != b"\0"
            for one in fields
        }

    def read_rows(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Row:
        """Read the wanted fields of rows, in one native read."""
        batch = Batch(self._native, self.path, self._places, numbers)
        return batch.read(self._fields(wanted), wanted)

    def read_packed(
        self, name: str, numbers: npt.NDArray[np.int64]
    ) -> tuple[memoryview | bytearray, bytes, bytes | None]:
        """Return the values of a field in rows as they are stored, after verification.

        Returns:
            The concatenated values, their offsets, and for a sequence their counts.
        """
        place = self._places[name]
        _, kind, width, _ = self._stored_fields[place]
        if kind == "column":
            column = self._native.column(place, numbers)
            offsets = np.arange(len(numbers) + 1, dtype=np.int64) * (width or 0)
            return column, offsets.tobytes(), None
        if kind == "sequence":
            (data, offsets_of, _), counts = self._native.read_elements(numbers, place, None)
            return data, offsets_of, bytes(counts)
        ((data, offsets_of, _),) = self._native.read_cells(numbers, [place])
        return data, offsets_of, None

    def raw(self) -> "Stored":
        """Return the same rows with every field that is not a number as bytes."""
        fields = {
            name: one
            if one.kind == "column"
            else replace(one, codec=_BYTES, is_sequence=one.kind == "sequence")
            for name, one in self.spec.fields.items()
        }
        return Stored(
            self._native,
            Spec(fields),
            self.paths,
            allow_pickle=self._allow_pickle,
            folder=self._folder,
            metadata=self.metadata,
            partial=self._partial,
            is_raw=True,
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
            return np.frombuffer(self._native.count(numbers, place), np.int64)
        nbytes = np.frombuffer(self._native.sizes(numbers, place), np.int64)
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
        return self._native.column(self._places[name], None if is_all else numbers)

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows, from the index alone."""
        return self._counts(np.asarray(numbers, np.int64), self.spec.fields[name])

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together."""
        del names
        return ROWS

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
        """Verify every checksum of the files."""
        rows, damaged = self._native.check(progress)
        return Verification(rows, [Damage(*damage) for damage in damaged])

    def close(self) -> None:
        """Close the files."""
        self._native.close()


def _same(again: Callable[[Sequence[str]], Stored], paths: Sequence[str], identity: str) -> Stored:
    try:
        opened = again(paths)
    except FileNotFoundError as error:
        error.add_note(
            "the data set was compacted, replaced or moved since it was pickled: open it again"
        )
        raise
    opened.check_identity(identity)
    return opened


def _raw(again: Callable[[Sequence[str]], Stored], paths: Sequence[str], identity: str) -> Stored:
    return _same(again, paths, identity).raw()
