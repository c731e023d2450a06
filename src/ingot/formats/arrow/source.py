"""Rows that are in Parquet or Arrow files."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot._core import contents
from ingot.codecs import codec_of
from ingot.dataset.read.ingot_plan import Unpacking
from ingot.dataset.read.plan import OwnPlan, Packed, Plan
from ingot.dataset.read.source import Numbers, Picks, Row, Source, Stored, identity_of
from ingot.dataset.spec import Field, Spec
from ingot.errors import ClosedError, FormatError
from ingot.formats.arrow.blocks import Blocks
from ingot.formats.arrow.choice import Choice
from ingot.formats.arrow.leaf import Leaf, leaves_of
from ingot.formats.arrow.metadata import features_of, metadata_of
from ingot.formats.arrow.origin import Origin
from ingot.formats.arrow.packer import Packer
from ingot.formats.arrow.packing import valid
from ingot.formats.arrow.parquet import ParquetFile
from ingot.formats.base.media import AnyFile, type_of_file
from ingot.locks import cached_property
from ingot.records import Damage
from ingot.records.indices import Rows

_STEP = 1 << 14


class ArrowRows(Source):
    """Rows of files of columns, concatenated.

    Args:
        origin: What is opened.
        choice: Which fields to read, and as what.

    Raises:
        FormatError: A file is damaged, or the columns differ or have no type here.
    """

    spec: Spec
    path: str
    paths: Sequence[str]
    format: str
    closed = False

    def __init__(self, origin: Origin, choice: Choice) -> None:
        self._origin = origin
        self._choice = choice
        self.path, files, features = origin.open()
        self.paths = [one.path for one in files]
        is_parquet = isinstance(files[0], ParquetFile)
        self.format = origin.format or ("parquet" if is_parquet else "arrow")
        self._schema = files[0].schema
        self._features = features or features_of(self._schema)
        leaves = leaves_of(self._schema, self._features, self.path, choice.names)
        self._leaves = {one.name: one for one in leaves}
        self._blocks = Blocks(files)
        fields = {name: self._field(leaf) for name, leaf in self._leaves.items()}
        self.spec = choice.of(fields, self.path)
        self._packer = Packer(self._leaves, self.spec, self.path)

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

    def again(self) -> tuple[Callable[..., Source], tuple[Any, ...]]:
        """Return what opens the same files in another process."""
        return _reopened, (self._origin, self._choice, self.stamps)

    @property
    def stamps(self) -> str:
        """What tells the files from their successors and copies."""
        return identity_of(f"{one.path} {one.identity[:2]}" for one in self._blocks.files)

    @cached_property
    def identity(self) -> str:
        """What tells the content of the files from others."""
        for one in self._blocks.files:
            one.check_unchanged()
        return identity_of(contents(self.paths))

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
        return sum(one.identity[0] for one in self._blocks.files)

    def __len__(self) -> int:
        return len(self._blocks)

    def _arrays(self, names: Iterable[str], numbers: Numbers) -> dict[str, Any]:
        """Return the values of fields in rows, cast to the plain types of their leaves.

        They may be views on files, which must be unchanged when all work on them is done.
        """
        if self.closed:
            message = f"{self.path}: the data set is closed"
            raise ClosedError(message, self.path)
        listed = list(names)
        self._blocks.check_unchanged(numbers)
        taken = self._blocks.take(numbers, self._packer.parts(listed))
        return self._packer.cast(listed, iter(taken), numbers)

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        fields = [self.spec.fields[name] for name in wanted]

        def read() -> dict[str, Packed]:
            found: dict[str, Packed] = {}
            for name, array in self._arrays(wanted, numbers).items():
                found |= self._packer.pack(name, array, numbers, wanted[name])
            return found

        def decode(found: dict[str, Packed]) -> Row:
            values = Unpacking(self.path, numbers, fields, wanted).unpack(found)
            self._blocks.check_unchanged(numbers)
            return values

        return OwnPlan(read, decode)

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file would store them; `NAME?` for what is there."""
        arrays = self._arrays(dict.fromkeys(name.removesuffix("?") for name in names), numbers)
        found = self._packer.stored(names, arrays, numbers)
        copied = [(bytes(data), offsets, counts) for data, offsets, counts in found]
        self._blocks.check_unchanged(numbers)
        return copied

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows, without its values."""
        return self._each(name, numbers, np.int64, _lengths)

    def present(self, name: str, numbers: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows have a value for a field, without the values."""
        if not self.spec.fields[name].is_optional:
            return np.ones(len(numbers), np.bool_)
        return self._each(name, numbers, np.bool_, valid)

    def _each(
        self, name: str, numbers: Rows, dtype: Any, of: Callable[[Any], npt.NDArray[Any]]
    ) -> npt.NDArray[Any]:
        found = np.empty(len(numbers), dtype)
        for start in range(0, len(numbers), _STEP):
            some = np.asarray(numbers[start : start + _STEP], np.int64)
            found[start : start + len(some)] = of(self._arrays([name], some)[name])
            self._blocks.check_unchanged(some)
        return found

    def together(self, names: Sequence[str]) -> tuple[int, int]:
        """Return how many rows to read together."""
        del names
        return 16, 1024

    def damage(self, numbers: Numbers) -> list[Damage]:
        """Return what is damaged; pyarrow verifies the pages that have checksums."""
        try:
            self.check(numbers)
        except FormatError:
            return [one for some in self._blocks.split(numbers) for one in self._damage(some)]
        return []

    def _damage(self, numbers: Numbers) -> list[Damage]:
        """Return what is damaged among rows of one block: all, if it cannot be decoded."""
        try:
            self._blocks.take(numbers[:1], self._packer.parts(list(self.spec)))
        except FormatError as error:
            return [_damaged(int(numbers[0]), len(numbers), error)]
        found: list[Damage] = []
        for number in map(int, numbers):
            try:
                self.check(np.array([number]))
            except FormatError as error:
                if found and (found[-1].record or 0) + found[-1].records == number:
                    found[-1] = replace(found[-1], records=found[-1].records + 1)
                else:
                    found.append(_damaged(number, 1, error))
        return found

    def close(self) -> None:
        """Close the files."""
        self.closed = True
        for one in self._blocks.files:
            one.close()


def _damaged(first: int, count: int, error: FormatError) -> Damage:
    return Damage(first, count, getattr(error, "offset", None) or 0, str(error))


def _lengths(array: Any) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _reopened(origin: Origin, choice: Choice, stamps: str) -> ArrowRows:
    """Open files once more, which must be as they were.

    Raises:
        FormatError: One was changed.
    """
    opened = ArrowRows(origin, choice)
    if opened.stamps != stamps:
        message = f"{opened.path}: the files were changed since this data set was pickled"
        raise FormatError(message, opened.path)
    return opened
