"""Rows that are in Parquet or Arrow files."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ingot._core import contents
from ingot.cached import cached_property
from ingot.codecs import codec_of
from ingot.dataset.read.arrow.blocks import Blocks
from ingot.dataset.read.arrow.choice import Choice
from ingot.dataset.read.arrow.leaf import Leaf, leaves_of
from ingot.dataset.read.arrow.metadata import features_of, metadata_of
from ingot.dataset.read.arrow.origin import Origin
from ingot.dataset.read.arrow.packer import Packer
from ingot.dataset.read.arrow.packing import valid
from ingot.dataset.read.identity import identity_of
from ingot.dataset.read.ingot_plan import Unpacking
from ingot.dataset.read.iteration import rows_of
from ingot.dataset.read.media import AnyFile, type_of_file
from ingot.dataset.read.plan import OwnPlan, Packed, Plan
from ingot.dataset.read.source import Elements, Picks, Row
from ingot.dataset.spec import Field, Spec
from ingot.errors import ClosedError, FormatError
from ingot.records import Damage, Verification
from ingot.records.indices import Rows

Numbers: TypeAlias = npt.NDArray[np.int64]

_STEP = 1 << 14
_TOGETHER = (16, 1024)


class ArrowRows:
    """Rows of files of columns, concatenated.

    Args:
        origin: What is opened.
        choice: Which fields to read, and as what.

    Raises:
        FormatError: A file is damaged, or the columns differ or have no type here.
    """

    others: Sequence[str] = ()

    def __init__(self, origin: Origin, choice: Choice) -> None:
        self._origin = origin
        self._choice = choice
        self.path, files, features = origin.open()
        self.paths = [one.path for one in files]
        self._schema = files[0].schema
        self._features = features or features_of(self._schema)
        leaves = leaves_of(self._schema, self._features, self.path, choice.names)
        self._leaves = {one.name: one for one in leaves}
        self._blocks = Blocks(files)
        fields = {name: self._field(leaf) for name, leaf in self._leaves.items()}
        self.spec = choice.of(fields, self.path)
        self._stored = self.spec
        self._packer = Packer(self._leaves, self.spec, self.path)
        self._is_closed = False

    def _field(self, leaf: Leaf) -> Field:
        kind = leaf.type
        is_sequence = kind.endswith("[]")
        codec = codec_of(kind.removesuffix("[]"))
        if leaf.media is not None:
            first = self._blocks.first(leaf.bytes_path)
            name = None if first is None else type_of_file(first, leaf.media)
            codec = codec if name is None else AnyFile(name, leaf.media)
        is_optional = leaf.nullable and self._blocks.has_nulls(leaf.bytes_path)
        return Field(leaf.name, codec, is_sequence, is_optional)

    def __reduce__(self) -> tuple[Any, ...]:
        is_raw = self._stored is not self.spec
        return _reopened, (self._origin, self._choice, self.stamps, is_raw)

    @property
    def stamps(self) -> str:
        """What tells the files from their successors and copies."""
        return identity_of(f"{one.path} {one.stamp}" for one in self._blocks.files)

    @cached_property
    def identity(self) -> str:
        """What tells the content of the files from others."""
        for one in self._blocks.files:
            one.check_unchanged()
        return identity_of(contents(self.paths))

    def raw(self, names: Collection[str] | None = None) -> "ArrowRows":
        """Return the same rows with fields that are not numbers as bytes.

        Args:
            names: The fields; None for all.
        """
        found: ArrowRows = object.__new__(ArrowRows)
        found.__dict__.update(self.__dict__)
        plain = codec_of("bytes")
        fields = {
            name: one
            if one.kind == "column" or not (names is None or name in names)
            else replace(one, codec=plain, is_sequence=one.kind == "sequence")
            for name, one in self._stored.fields.items()
        }
        found.spec = Spec(fields)
        return found

    @property
    def schema(self) -> Any:
        """The columns, of type pyarrow.Schema."""
        return self._schema

    @cached_property
    def _metadata(self) -> str:
        return json.dumps(metadata_of(self._schema, self._features))

    @property
    def metadata(self) -> dict[str, Any]:
        """What the schema tells, the names of class labels, and the schema itself."""
        loaded: dict[str, Any] = json.loads(self._metadata)
        return loaded

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        return sum(one.stamp[0] for one in self._blocks.files)

    def __len__(self) -> int:
        return len(self._blocks)

    @contextmanager
    def _arrays(self, names: Iterable[str], numbers: Numbers) -> Iterator[dict[str, Any]]:
        """Lend the values of fields in rows, cast to the plain types of their leaves.

        They may be views on files, which must be unchanged when all work on them is done.
        """
        if self._is_closed:
            message = f"{self.path}: the data set is closed"
            raise ClosedError(message, self.path)
        listed = list(names)
        self._blocks.check_unchanged(numbers)
        taken = self._blocks.take(numbers, self._packer.parts(listed))
        yield self._packer.cast(listed, iter(taken), numbers)
        self._blocks.check_unchanged(numbers)

    def read_packed(
        self, names: Sequence[str], numbers: Numbers
    ) -> list[tuple[Any, bytes, bytes | None]]:
        """Return values as an Ingot file would store them; `NAME?` for what is there.

        Raises:
            FormatError: A value is not of the type of its field.
        """
        plain = dict.fromkeys(name.removesuffix("?") for name in names)
        with self._arrays(plain, numbers) as arrays:
            found = self._packer.stored(names, arrays, numbers)
            return [(bytes(data), offsets, counts) for data, offsets, counts in found]

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        return OwnPlan(lambda: self.read_rows(numbers, wanted))

    def read_rows(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Row:
        """Return the wanted fields of rows, stacked where possible."""
        read: dict[str, Packed] = {}
        with self._arrays(wanted, numbers) as arrays:
            for name, array in arrays.items():
                read |= self._packer.pack(name, array, numbers, wanted[name])
            fields = [self.spec.fields[name] for name in wanted]
            return Unpacking(self.path, numbers, fields, wanted).unpack(read)

    def read_row(self, number: int, wanted: Mapping[str, Elements]) -> Row:
        """Return the wanted fields of one row."""
        picks = {
            name: [elements] if self.spec.fields[name].is_sequence else None
            for name, elements in wanted.items()
        }
        batch = self.read_rows(np.array([number], np.int64), picks)
        return rows_of(batch, self.spec.fields, 1, copy=False)[0]

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return which fields a row has."""
        found: dict[str, bool | range] = {}
        with self._arrays(names, np.array([number], np.int64)) as arrays:
            for name, array in arrays.items():
                found[name] = bool(valid(array)[0])
                if found[name] and self._stored.fields[name].is_sequence:
                    found[name] = range(len(array[0]))
        return found

    def column(self, name: str, numbers: Rows) -> npt.NDArray[Any]:
        """Return the numbers of rows in a field; 0 where one is missing."""
        field = self._stored.fields[name]
        if field.kind != "column":
            message = f"{self.path}: field {name!r} is {field.type}, expected one number per row"
            raise TypeError(message)
        found = np.empty(len(numbers), field.codec.dtype)
        for places, some in _steps(numbers):
            with self._arrays([name], some) as arrays:
                data = self._packer.pack(name, arrays[name], some)[name][0]
                found[places] = np.frombuffer(data, field.codec.dtype)
        return found

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows; 0 where it is missing."""
        found = np.empty(len(numbers), np.int64)
        for places, some in _steps(numbers):
            with self._arrays([name], some) as arrays:
                array = arrays[name]
                each = array.value_lengths().fill_null(0) if len(array) else array
                found[places] = each.to_numpy(zero_copy_only=False)
        return found

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for an optional field."""
        found = np.ones(len(numbers), np.bool_)
        if self._stored.fields[name].is_optional:
            for places, some in _steps(numbers):
                with self._arrays([name], some) as arrays:
                    found[places] = valid(arrays[name])
        return found

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together."""
        del names
        return _TOGETHER

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
        """Read everything; pyarrow verifies the pages of Parquet files that have checksums."""
        names = [name for name, *_ in self._stored.stored()]
        damaged: list[Damage] = []
        for places, numbers in _steps(range(len(self)), _TOGETHER[1]):
            try:
                self.read_packed(names, numbers)
            except FormatError:
                for some in self._blocks.split(numbers):
                    damaged += self._damage(names, some)
            if progress is not None:
                progress(places.stop, len(self))
        return Verification(len(self), damaged, tuple(self.spec))

    def _damage(self, names: Sequence[str], numbers: Numbers) -> list[Damage]:
        """Return what is damaged among rows of one block: all, if it cannot be decoded."""
        plain = dict.fromkeys(name.removesuffix("?") for name in names)
        try:
            self._blocks.take(numbers[:1], self._packer.parts(list(plain)))
        except FormatError as error:
            return [_damaged(int(numbers[0]), len(numbers), error)]
        found: list[Damage] = []
        for number in map(int, numbers):
            try:
                self.read_packed(names, np.array([number]))
            except FormatError as error:
                if found and (found[-1].record or 0) + found[-1].records == number:
                    found[-1] = replace(found[-1], records=found[-1].records + 1)
                else:
                    found.append(_damaged(number, 1, error))
        return found

    @property
    def closed(self) -> bool:
        """Whether the files are closed."""
        return self._is_closed

    def close(self) -> None:
        """Close the files."""
        self._is_closed = True
        for one in self._blocks.files:
            one.close()


def _damaged(first: int, count: int, error: FormatError) -> Damage:
    return Damage(first, count, getattr(error, "offset", None) or 0, str(error))


def _steps(numbers: Rows, step: int = _STEP) -> Iterable[tuple[slice, Numbers]]:
    for start in range(0, len(numbers), step):
        some = np.asarray(numbers[start : start + step], np.int64)
        yield slice(start, start + len(some)), some


def _reopened(
    origin: Origin,
    choice: Choice,
    stamps: str,
    is_raw: bool,  # noqa: FBT001
) -> ArrowRows:
    """Open files once more, which must be as they were.

    Raises:
        FormatError: One was changed.
    """
    opened = ArrowRows(origin, choice)
    if opened.stamps != stamps:
        message = f"{opened.path}: the files were changed since this data set was pickled"
        raise FormatError(message, opened.path)
    return opened.raw() if is_raw else opened
