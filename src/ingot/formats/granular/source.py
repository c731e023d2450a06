"""Rows in a Granular folder."""

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ingot._core import contents
from ingot.codecs import Bytes
from ingot.codecs.codec import Codec
from ingot.dataset.read.compound import chained
from ingot.dataset.read.plan import OwnPlan, Plan
from ingot.dataset.read.source import Elements, Numbers, Picks, Row, Source, Stored, identity_of
from ingot.dataset.read.values import stacked, undecodable
from ingot.dataset.spec import Field, Spec
from ingot.dataset.write.columns import encoded
from ingot.errors import CorruptFileError, FormatError
from ingot.formats.base.options import Options
from ingot.formats.granular import layout
from ingot.formats.granular.bag import open_bag
from ingot.formats.granular.codecs import DECODERS, GranularCodec
from ingot.formats.granular.columns import Bag, Columns
from ingot.formats.granular.layout import REFS, AnyPath, PathLike, element, is_sequence, local
from ingot.locks import cached_property
from ingot.records.expand import check_link
from ingot.records.indices import Rows

_BAGS = (".bag", ".idx")
_NUMBERS = {"int": np.int64, "i64": np.int64, "u64": np.uint64}


class GranularRows(Source):
    """Rows of a folder, decoded.

    Args:
        columns: The stored values.
        codecs: The codecs of the types.
    """

    spec: Spec
    path: str
    paths: Sequence[str]
    format = "granular"
    closed = False
    is_recoded = True
    damages = (CorruptFileError,)

    def __init__(self, columns: Columns, codecs: Mapping[str, Codec]) -> None:
        self.columns = columns
        self.path = columns.path
        self.paths = [columns.path]
        self.spec = Spec(
            {
                key: Field(key, codecs[element(kind)], is_sequence(kind))
                for key, kind in columns.spec.items()
            }
        )
        self._decoders = {name: field.codec.decode for name, field in self.spec.fields.items()}

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a folder of any version.

        Raises:
            FormatError: It is damaged, or has types that Granular does not define.
        """
        spec = layout.read_spec(folder)
        codecs = {element(kind): _codec(element(kind), folder) for kind in spec.values()}
        return cls(_columns(folder, spec), codecs)

    def again(self) -> tuple[Callable[..., Source], tuple[Any, ...]]:
        """Return what opens the same folder in another process."""
        return GranularRows.open, (Path(self.columns.path),)

    def raw(self, names: Collection[str] | None = None) -> Self:
        """Return the same rows with every field that is not a number as bytes.

        Raises:
            TypeError: These are only some of the fields.
        """
        if names is not None and not set(self.spec).issubset(names):
            message = f"{self.path}: only all fields together can be read as they are stored"
            raise TypeError(message)
        kinds = {
            element(kind): self.spec.fields[key].codec for key, kind in self.columns.spec.items()
        }
        codecs = {kind: one if kind in _NUMBERS else Bytes() for kind, one in kinds.items()}
        found = type(self)(self.columns, codecs)
        found.raw_names = frozenset(self.spec)
        return found

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

    def _values(self, stored: Mapping[str, Any], numbers: Sequence[int]) -> dict[str, list[Any]]:
        return {
            name: [self._value(name, *one) for one in zip(values, numbers, strict=True)]
            for name, values in stored.items()
        }

    def _value(self, name: str, stored: bytes | list[bytes], number: int) -> Any:
        decode = self._decoders[name]
        try:
            return [decode(one) for one in stored] if isinstance(stored, list) else decode(stored)
        except (ValueError, OSError) as error:
            raise undecodable(self.spec.fields[name], self.paths[0], number, error) from error

    def plan(self, numbers: Numbers, wanted: Mapping[str, Picks]) -> Plan:
        """Plan to read the wanted fields of rows."""
        rows = numbers.tolist()

        def read() -> dict[str, Any]:
            whole = [name for name, picks in wanted.items() if picks is None]
            found: dict[str, Any] = {**self.columns.read_many(rows, whole)}
            for name, picks in wanted.items():
                if picks is not None:
                    each = [(k, {name: slice(*one)}) for k, one in zip(rows, picks, strict=True)]
                    found[name] = [self.columns.read(*one)[name] for one in each]
            return found

        def decode(found: dict[str, Any]) -> Row:
            values = self._values(found, rows)
            return {name: self._stacked(name, values[name]) for name in wanted}

        return OwnPlan(read, decode)

    def packed(self, names: Sequence[str], numbers: Numbers) -> Sequence[Stored]:
        """Return values as an Ingot file would store them; media files stay as they are."""
        return encoded(self, names, numbers, self if self.raw_names else self.raw())

    def _stacked(self, name: str, values: list[Any]) -> Any:
        dtype = _NUMBERS.get(self.spec[name])
        if dtype is None:
            return stacked(values)
        try:
            return np.array(values, dtype)
        except OverflowError:
            return values

    def available(self, number: int, names: Sequence[str]) -> dict[str, bool | range]:
        """Return which fields a row has, from the references alone."""
        found = self.columns.find(number)
        return {
            name: True if isinstance(ref, int) else range(len(ref))
            for name, ref in ((name, found[name]) for name in names)
        }

    def lengths(self, name: str, numbers: Rows) -> npt.NDArray[np.int64]:
        """Return the lengths of a sequence in rows."""
        found = self.columns.find_many([int(number) for number in numbers])
        refs = (one[name] for one in found)
        return np.array([0 if isinstance(ref, int) else len(ref) for ref in refs], np.int64)

    def field_bytes(self, rows: Numbers) -> Mapping[str, int]:
        """Return the size of the bag of each field."""
        del rows
        folder = Path(self.path)
        return {name: (folder / f"{name}.bag").stat().st_size for name in self.spec}

    def check(self, numbers: Numbers) -> None:
        """Check that every record is where the limits say; Granular has no checksums."""
        self.columns.read_many(numbers.tolist(), list(self.spec))

    def close(self) -> None:
        """Close the bags."""
        self.closed = True
        self.columns.close()


def open_directory(folder: Path, options: Options) -> Source | None:
    """Open a data set; return None for any other directory.

    Raises:
        FormatError: It is damaged, or its writer has not finished it.
    """
    del options
    try:
        if (folder / layout.SPEC).is_file():
            return GranularRows.open(folder)
        if (folder / layout.shard_name(0) / layout.SPEC).is_file():
            names = layout.shards((one.name for one in folder.iterdir()), str(folder))
            return chained([GranularRows.open(folder / name) for name in names], str(folder))
    except FormatError:
        raise
    except ValueError as error:
        message = f"{folder}: {error}"
        raise FormatError(message, str(folder)) from error
    if (folder / layout.HIDDEN_SPEC).is_file():  # Left by a writer for Granular 0.21.
        message = f"{folder}: Granular's writer did not finish this data set"
        raise FormatError(message, str(folder))
    return None


def open_folder(folder: AnyPath, cached: Container[str] = ()) -> Columns:
    """Open the stored values of a data set in one folder, of any version and of any types.

    Args:
        folder: A path, or an object with the interface of one.
        cached: Keys to read completely now, on other file systems than the local one.

    Raises:
        FileNotFoundError: The folder is not a data set.
        FormatError: It is damaged.
    """
    place = local(folder)
    return _columns(place, layout.read_spec(place), cached)


def _columns(
    folder: Path | PathLike, spec: Mapping[str, str], cached: Container[str] = ()
) -> Columns:
    has_refs = REFS not in spec and (folder / f"{REFS}.bag").exists()

    def open_one(name: str) -> Bag:
        path = folder / f"{name}.bag"
        limits = None if has_refs else path.with_suffix(".idx")
        for file in (path, limits):
            if isinstance(file, Path):
                if not file.is_file():
                    message = f"{folder}: {file.name} is missing"
                    raise FormatError(message, str(folder))
                check_link(str(file))
        return open_bag(path, limits, single_file=has_refs, cached=name in cached)

    return Columns(str(folder), spec, has_refs=has_refs, open_bag=open_one)


def _codec(kind: str, folder: Path) -> Codec:
    if kind not in DECODERS:
        message = (
            f"{folder}: {kind!r} is not one of Granular's types; "
            "ingot.formats.granular.open_folder reads values of any type as bytes"
        )
        raise FormatError(message, str(folder))
    return GranularCodec(kind)
