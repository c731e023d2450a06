"""Rows that are in Parquet or Arrow files."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ingot._core import ArrowArray, contents
from ingot.codecs import Pickle, codec_of
from ingot.codecs.signature import is_file_type
from ingot.dataset.read.ingot_plan import Unpacking
from ingot.dataset.read.plan import OwnPlan, Packed, Plan
from ingot.dataset.read.source import Numbers, Picks, Source, Stored, identity_of
from ingot.dataset.spec import Field, Spec, SpecLike
from ingot.errors import ClosedError, FormatError
from ingot.formats.arrow.blocks import Blocks
from ingot.formats.arrow.origin import Files, Origin, SavedFolder, find, splits_of
from ingot.formats.arrow.packer import At, Packer
from ingot.formats.arrow.parquet import ParquetFile
from ingot.formats.arrow.schema import Kind, Leaf, features_of, leaves_of, metadata_of
from ingot.formats.base.media import AnyFile, type_of_file
from ingot.formats.base.options import Options
from ingot.locks import cached_property
from ingot.records import Damage

_OTHERS = ", or leave the column out: name the others with spec={...}"
_BYTES = ("bytes", "utf8")
"""The types of values that any codec may make something of."""


def open_files(paths: Sequence[str], name: str, options: Options) -> "ArrowRows":
    """Open files."""
    choice = Choice(options.spec, options.allow_pickle)
    return ArrowRows(Files(paths, options.partial, name), choice)


def open_directory(folder: Path, options: Options) -> "ArrowRows | None":
    """Open what `save_to_disk` has written; return None for any other directory.

    Raises:
        FormatError: It has several splits.
    """
    if splits := splits_of(folder):
        message = (
            f"{folder}: this is a DatasetDict with the splits {', '.join(map(repr, splits))}; "
            f"open one of them: ingot.open({str(folder / splits[0])!r})"
        )
        raise FormatError(message, str(folder))
    if find(folder) is None:
        return None
    choice = Choice(options.spec, options.allow_pickle)
    return ArrowRows(SavedFolder(str(folder), options.partial), choice)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which fields to read, and as what.

    Attributes:
        spec: The fields and their types; None for all, as they are stored.
        allow_pickle: Whether to read fields that are stored as pickle.
    """

    spec: SpecLike | None = None
    allow_pickle: bool = False

    @property
    def names(self) -> list[str] | None:
        """The full names of the fields; None for all."""
        return None if self.spec is None else list(Spec.of(self.spec, [Pickle(allowed=True)]))

    def of(self, fields: Mapping[str, Field], where: str) -> Spec:
        """Return the fields to read.

        Args:
            fields: What the files have.
            where: The name of the files in errors.

        Raises:
            FormatError: The files have no such field, or its values cannot be of the type.
        """
        if self.spec is None:
            return Spec(fields)
        spec = Spec.of(self.spec, [Pickle(allowed=self.allow_pickle)])
        for name, wanted in spec.fields.items():
            _check(fields.get(name), wanted, fields, where)
        return Spec({name: _as_stored(fields[name], one) for name, one in spec.fields.items()})


def _check(stored: Field | None, wanted: Field, fields: Mapping[str, Field], where: str) -> None:
    if stored is None:
        listed = ", ".join(map(repr, fields))
        message = f"{where}: there is no field {wanted.name!r}, only {listed}"
        raise FormatError(message, where)
    if not _is_readable(stored, wanted):
        found = f"field {wanted.name!r} is {stored.type}"
        message = f"{where}: {found}, which cannot be read as {wanted.type}"
        raise FormatError(message, where)


def _is_readable(stored: Field, wanted: Field) -> bool:
    """Whether types are the same, a codec decodes stored bytes, or files are wanted as bytes."""
    if wanted.codec.name == stored.codec.name:
        return wanted.is_sequence == stored.is_sequence
    is_file = is_file_type(stored.codec.name) and wanted.codec.name == "bytes"
    return (is_file or stored.codec.name in _BYTES) and wanted.kind == stored.kind


def _as_stored(stored: Field, wanted: Field) -> Field:
    """Return the field as it is wanted; files of several types are read as without a spec."""
    is_file = is_file_type(stored.codec.name) and wanted.codec.name == stored.codec.name
    return replace(wanted, codec=stored.codec) if is_file else wanted


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
        self._schema = Kind.of(files[0].schema)
        self._features = features or features_of(self._schema)
        leaves = leaves_of(self._schema, self._features, self.path, choice.names, others=_OTHERS)
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
        """What distinguishes the files from their successors and copies."""
        return identity_of(f"{one.path} {one.identity[:2]}" for one in self._blocks.files)

    @cached_property
    def identity(self) -> str:
        """What distinguishes the content of the files from that of others."""
        for one in self._blocks.files:
            one.check_unchanged()
        return identity_of(contents(self.paths))

    @cached_property
    def _metadata(self) -> str:
        return json.dumps(metadata_of(self._schema, self._features))

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the schema, the names of class labels, and the schema itself."""
        loaded: dict[str, Any] = json.loads(self._metadata)
        return loaded

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        return sum(one.identity[0] for one in self._blocks.files)

    def __len__(self) -> int:
        return len(self._blocks)

    def _values(self, names: Iterable[str], numbers: Numbers) -> At:
        """Return the values of fields in rows, by their paths.

        They may be views on files, which must be unchanged when all work on them is done.
        """
        if self.closed:
            message = f"{self.path}: the data set is closed"
            raise ClosedError(message, self.path)
        parts = self._packer.parts(list(names))
        self._blocks.check_unchanged(numbers)
        taken = map(ArrowArray, self._blocks.take(numbers, parts))
        found = dict(zip(parts, taken, strict=True))
        return lambda path: (found[path], ())

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        fields = [self.spec.fields[name] for name in wanted]

        def read() -> dict[str, Packed]:
            at = self._values(wanted, numbers)
            found: dict[str, Packed] = {}
            for name, picks in wanted.items():
                found |= self._packer.pack(name, at, numbers, picks)
            self._blocks.check_unchanged(numbers)
            return found

        return OwnPlan(read, Unpacking(self.path, numbers, fields, wanted).unpack)

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file would store them; `NAME?` for what is there."""
        at = self._values(dict.fromkeys(name.removesuffix("?") for name in names), numbers)
        found = self._packer.stored(names, at, numbers)
        self._blocks.check_unchanged(numbers)
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


def _reopened(origin: Origin, choice: Choice, stamps: str) -> "ArrowRows":
    """Open files once more, which must be as they were.

    Raises:
        FormatError: One was changed.
    """
    opened = ArrowRows(origin, choice)
    if opened.stamps != stamps:
        message = f"{opened.path}: the files were changed since this data set was pickled"
        raise FormatError(message, opened.path)
    return opened
