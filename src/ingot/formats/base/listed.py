"""Data sets of other libraries: a directory with an `index.json` that lists its files."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from ingot.dataset.atomic import load, parsing
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.source import Progress
from ingot.errors import CorruptFileError, FormatError, counted
from ingot.formats.base.indexed import ForeignFiles, open_native
from ingot.formats.base.options import Options
from ingot.formats.table import format_named
from ingot.records import Damage, Verification

INDEX = "index.json"
_INDEX_BYTES = 256 << 20
_NAME_MAX = 255
_STEP = 8 << 20


@dataclass(frozen=True, slots=True)
class Shard:
    """A file that an `index.json` lists.

    Attributes:
        name: Its name in the directory, as it is stored.
        rows: The number of its rows.
        nbytes: Its size, if that is listed.
        compression: How it is compressed as a whole; None if it is not.
        unpacked_nbytes: Its size without compression, if that is listed.
        hashes: The checksums that are listed, by algorithm.
    """

    name: str
    rows: int
    nbytes: int | None = None
    compression: str | None = None
    unpacked_nbytes: int | None = None
    hashes: Mapping[str, str] = field(default_factory=dict)

    def check(self, folder: Path, *, strict: bool) -> Iterator[None]:
        """Compare the checksums of the file with those that are listed, and yield now and then.

        Args:
            folder: The directory.
            strict: Whether a checksum that cannot be computed here is an error; else it is left
                out.

        Raises:
            CorruptFileError: A checksum differs.
            FormatError: A checksum cannot be computed here.
        """
        path = folder / self.name
        states = {algorithm: _state(algorithm) for algorithm in self.hashes}
        unknown = [algorithm for algorithm, state in states.items() if state is None]
        if strict and unknown:
            note = "; install xxhash" if unknown[0].startswith("xxh") else ""
            message = f"{path}: its checksum {unknown[0]!r} cannot be computed here{note}"
            raise FormatError(message, str(path))
        known = {algorithm: state for algorithm, state in states.items() if state is not None}
        if not known:
            return
        with path.open("rb") as file:
            while part := file.read(_STEP):
                for state in known.values():
                    state.update(part)
                yield
        for algorithm, state in known.items():
            if (digest := state.hexdigest()) != self.hashes[algorithm]:
                message = (
                    f"{path}: {algorithm} is {digest}, but {self.hashes[algorithm]} is listed: the "
                    "file is damaged; copy it again"
                )
                raise CorruptFileError(message, str(path))


def _state(algorithm: str) -> Any:
    """Return what computes a checksum; None if nothing here does."""
    if algorithm.startswith("xxh"):
        try:
            return getattr(import_module("xxhash"), algorithm)()
        except (ImportError, AttributeError, TypeError):
            return None
    try:
        state = hashlib.new(algorithm, usedforsecurity=False)
    except ValueError:
        return None
    # Those of any length do not say which.
    return state if state.digest_size else None


@dataclass(frozen=True, slots=True)
class Listed:
    """What an `index.json` says.

    Attributes:
        format: The name of the format.
        details: What the engine must know to find the rows in a file.
        shards: The files, in order.
    """

    format: str
    details: Mapping[str, Any]
    shards: Sequence[Shard]


Parse: TypeAlias = Callable[[Path, Mapping[str, Any]], Listed | None]
"""Returns what the `index.json` of a directory says, given its content; None if it is of another
library."""


def listed_in(folder: Path, parse: Parse) -> Listed | None:
    """Return what the `index.json` of a directory says; None if it is of another library.

    Raises:
        FormatError: It is damaged.
    """
    path = folder / INDEX
    if not path.is_file():
        return None
    with parsing(path, "JSON"):
        found = json.loads(load(path, _INDEX_BYTES))
    return parse(folder, found) if isinstance(found, dict) else None


def check_name(name: object, folder: Path) -> str:
    """Return the name of a listed file.

    Raises:
        FormatError: It leads out of the directory, or no file can have it.
    """
    is_name = isinstance(name, str) and name not in {"", ".", ".."} and Path(name).name == name
    is_short = is_name and len(str(name).encode(errors="replace")) <= _NAME_MAX
    if not isinstance(name, str) or not is_short or "\0" in name:
        message = f"{folder / INDEX}: {name!r} is not the name of a file in the directory"
        raise FormatError(message, str(folder))
    return name


def open_listed(
    folder: str, parse: Parse, options: Options, listed: Listed | None = None
) -> IngotSource | None:
    """Open the files that the `index.json` of a directory lists.

    Args:
        folder: The directory.
        parse: Reads the `index.json`.
        options: How to open them.
        listed: What the `index.json` says, if that is known.

    Returns:
        The rows; None if the `index.json` is of another library.

    Raises:
        FormatError: A file is missing, damaged, or has other rows than are listed.
    """
    place = Path(folder)
    listed = listed or listed_in(place, parse)
    if listed is None:
        return None
    if not listed.shards:
        message = f"{folder}: {INDEX} lists no files"
        raise FormatError(message, folder)
    paths = [str(stored_file(place, shard)) for shard in listed.shards]
    files = [
        (path, shard.compression, shard.unpacked_nbytes)
        for path, shard in zip(paths, listed.shards, strict=True)
    ]

    def admit(number: int) -> Iterator[None]:
        return listed.shards[number].check(place, strict=False)

    layout = {"format": listed.format, **listed.details}
    native, spec = open_native(files, layout, options, folder, admit)
    if native is None:
        message = f"{folder}: {format_named(listed.format).title} always has fields"
        raise FormatError(message, folder)
    for shard, found in zip(listed.shards, native.row_counts(), strict=True):
        check_rows(place, shard, found)
    opener = partial(open_listed, folder, parse, options)
    origin = ForeignFiles(listed.format, paths, folder, opener)
    allow_pickle = options.allow_pickle
    source = ListedSource.of(native, paths[0], origin, allow_pickle=allow_pickle, spec=spec)
    source.listed = listed
    return source


def check_rows(folder: Path, shard: Shard, found: int) -> None:
    """Refuse a file that has other rows than are listed."""
    if found != shard.rows:
        path = str(folder / shard.name)
        message = f"{path}: it has {counted(found, 'row')}, but {INDEX} lists {shard.rows}"
        raise CorruptFileError(message, path)


def stored_file(folder: Path, shard: Shard) -> Path:
    """Return the path of a file that is there and has the size that is listed.

    Raises:
        FormatError: It is missing, or has another size.
    """
    path = folder / shard.name
    try:
        found = path.stat().st_size
    except FileNotFoundError:
        message = f"{path}: the file is missing, but {INDEX} lists it"
        raise FormatError(message, str(path)) from None
    if shard.nbytes is not None and found != shard.nbytes:
        message = f"{path}: it has {found} bytes, but {INDEX} lists {shard.nbytes}"
        raise CorruptFileError(message, str(path))
    return path


class ListedSource(IngotSource):
    """Rows of a directory with an `index.json`.

    Attributes:
        listed: What the `index.json` says.
    """

    listed: Listed

    def verify(self, progress: Progress) -> Verification:
        """Verify every value, and the checksums that the `index.json` lists.

        Raises:
            FormatError: It lists checksums of a file that cannot be computed here.
        """
        found = super().verify(progress)
        damaged = [*found.damaged]
        for shard in self.listed.shards:
            try:
                for _ in shard.check(Path(self.path), strict=True):
                    pass
            except CorruptFileError as error:
                damaged.append(Damage(None, 0, 0, str(error)))
        return replace(found, damaged=damaged)
