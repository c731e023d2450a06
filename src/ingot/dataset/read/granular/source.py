"""Rows in a Granular folder."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ingot._core import contents
from ingot.cached import cached_property
from ingot.codecs import Bytes
from ingot.codecs.codec import Codec
from ingot.codecs.granular import DECODERS, GranularCodec
from ingot.dataset.read.decoding import undecodable
from ingot.dataset.read.granular import layout
from ingot.dataset.read.granular.column import Column
from ingot.dataset.read.granular.columns import Columns
from ingot.dataset.read.granular.layout import REFS, element, is_sequence
from ingot.dataset.read.identity import identity_of
from ingot.dataset.read.iteration import ROWS
from ingot.dataset.read.plan import OwnPlan, Plan
from ingot.dataset.read.source import Elements, Picks, Row
from ingot.dataset.read.stacking import stacked
from ingot.dataset.spec import Field, Spec
from ingot.errors import CorruptFileError, FormatError
from ingot.records import Damage, Verification
from ingot.records.expand import check_link
from ingot.records.indices import Rows

_STEP = 1024
"""Rows that are verified together."""

_BAGS = (".bag", ".idx")
_NUMBERS = {"int": np.int64, "i64": np.int64, "u64": np.uint64}


class GranularRows:
    """Rows of a folder, decoded.

    Args:
        columns: The stored values.
        codecs: The codecs of the types.
    """

    others: Sequence[str] = ()

    def __init__(self, columns: Columns, codecs: Mapping[str, Codec]) -> None:
        self.columns = columns
        self.closed = False
        self.path = columns.path
        self.paths = [columns.path]
        self.fields = {
            key: Field(key, codecs[element(kind)], is_sequence(kind))
            for key, kind in columns.spec.items()
        }
        self._decoders = {name: field.codec.decode for name, field in self.fields.items()}

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a folder of any version.

        Raises:
            FormatError: It is damaged, or has types that Granular does not define.
        """
        spec = layout.read_spec(folder)
        codecs = {element(kind): _codec(element(kind), folder) for kind in spec.values()}
        return cls(open_columns(folder, spec), codecs)

    def __reduce__(self) -> tuple[Any, ...]:
        return GranularRows.open, (Path(self.columns.path),)

    def raw(self, names: Collection[str] | None = None) -> "GranularRows":
        """Return the same rows with every field that is not a number as bytes.

        Raises:
            TypeError: These are only some of the fields.
        """
        if names is not None:
            message = f"{self.path}: only all fields together can be read as they are stored"
            raise TypeError(message)
        return RawRows(self.columns, {one.codec.name: one.codec for one in self.fields.values()})

    @cached_property
    def spec(self) -> Spec:
        """The fields and their types."""
        return Spec(self.fields)

    @property
    def metadata(self) -> dict[str, Any]:
        """Always empty: Granular does not store metadata."""
        return {}

    @property
    def nbytes(self) -> int:
        """The size of the bags."""
        return self.columns.nbytes

    @cached_property
    def identity(self) -> str:
        """What tells the content of the bags from others."""
        files = sorted(one for one in Path(self.path).iterdir() if one.suffix in _BAGS)
        return identity_of(contents([str(one) for one in files]))

    def __len__(self) -> int:
        return len(self.columns)

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Read the wanted fields of one row, in one native read per field."""
        parts = {name: slice(*elements) for name, elements in wanted.items()}
        stored = self.columns.read(number, parts)
        return {name: self._value(name, one, number) for name, one in stored.items()}

    def read_values(self, numbers: Sequence[int], names: Sequence[str]) -> dict[str, list[Any]]:
        """Read fields of several rows, in one native read per field."""
        stored = self.columns.read_many(numbers, names)
        return {
            name: [self._value(name, *one) for one in zip(values, numbers, strict=True)]
            for name, values in stored.items()
        }

    def _value(self, name: str, stored: bytes | list[bytes], number: int) -> Any:
        decode = self._decoders[name]
        try:
            return [decode(one) for one in stored] if isinstance(stored, list) else decode(stored)
        except (ValueError, OSError) as error:
            raise undecodable(self.fields[name], self.paths[0], number, error) from error

    def plan(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        return OwnPlan(lambda: self.read_rows(numbers, wanted))

    def read_rows(self, numbers: npt.NDArray[np.int64], wanted: Mapping[str, Picks]) -> Row:
        """Read the wanted fields of rows, as stacked arrays where possible."""
        whole = [name for name, picks in wanted.items() if picks is None]
        values = self.read_values(numbers.tolist(), whole)
        for name, picks in wanted.items():
            if picks is not None:
                each = zip(numbers.tolist(), picks, strict=True)
                values[name] = [self.read_row(k, {name: one})[name] for k, one in each]
        return {name: self._stacked(name, values[name]) for name in wanted}

    def _stacked(self, name: str, values: list[Any]) -> Any:
        dtype = _NUMBERS.get(self.spec[name])
        if dtype is None:
            return stacked(values)
        try:
            return np.array(values, dtype)
        except OverflowError:
            return values

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return which fields a row has."""
        found = self.columns.find(number)
        return {
            name: True if isinstance(ref, int) else range(len(ref))
            for name, ref in ((name, found[name]) for name in names)
        }

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field."""
        if self.spec[name] not in _NUMBERS:
            kind = self.spec[name]
            message = f"{self.paths[0]}: field {name!r} is {kind}, expected one number per row"
            raise TypeError(message)
        values = self.read_rows(np.asarray(numbers, np.int64), {name: None})[name]
        return np.asarray(values)

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return True for every row: Granular has no optional fields."""
        del name
        return np.ones(len(numbers), np.bool_)

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows."""
        found = self.columns.find_many([int(number) for number in numbers])
        refs = (one[name] for one in found)
        return np.array([0 if isinstance(ref, int) else len(ref) for ref in refs], np.int64)

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together."""
        del names
        return ROWS

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
        """Check that every record is where the limits say; Granular has no checksums."""
        damaged = []
        for start in range(0, len(self), _STEP):
            rows = range(start, min(start + _STEP, len(self)))
            try:
                self.columns.read_many(rows, list(self.fields))
            except CorruptFileError:
                damaged += [damage for number in rows for damage in self._damage(number)]
            if progress is not None:
                progress(rows.stop, len(self))
        return Verification(len(self), damaged, tuple(self.fields))

    def _damage(self, number: int) -> list[Damage]:
        try:
            self.columns.read(number, dict.fromkeys(self.fields, slice(None)))
        except CorruptFileError as error:
            return [Damage(number, 1, error.offset or 0, str(error))]
        return []

    def close(self) -> None:
        """Close the bags."""
        self.closed = True
        self.columns.close()


class RawRows(GranularRows):
    """Rows of a folder whose values are bytes, except numbers."""

    def __init__(self, columns: Columns, codecs: Mapping[str, Codec]) -> None:
        super().__init__(
            columns, {kind: one if kind in _NUMBERS else Bytes() for kind, one in codecs.items()}
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_raw, (Path(self.columns.path),)


def _open_raw(folder: Path) -> GranularRows:
    return GranularRows.open(folder).raw()


def open_columns(folder: Path, spec: Mapping[str, str]) -> Columns:
    """Open the bags of a folder, of any version.

    Raises:
        FormatError: They are not the bags of a data set.
    """
    has_refs = (folder / f"{REFS}.bag").is_file() and REFS not in spec

    def open_bag(name: str) -> Column:
        path = folder / f"{name}.bag"
        limits = path.with_suffix(".idx")
        for file in [path] if has_refs else [path, limits]:
            if not file.is_file():
                message = f"{folder}: {file.name} is missing"
                raise FormatError(message, str(folder))
            check_link(str(file))
        return Column.single(path) if has_refs else Column.paired(path, limits)

    return Columns(str(folder), spec, has_refs=has_refs, open_bag=open_bag)


def _codec(kind: str, folder: Path) -> Codec:
    if kind not in DECODERS:
        message = (
            f"{folder}: {kind!r} is not one of Granular's types; "
            "ingot.compat.granular.DatasetReader takes your own decoders"
        )
        raise FormatError(message, str(folder))
    return GranularCodec(kind)
