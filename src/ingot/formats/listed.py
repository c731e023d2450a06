"""Data sets of other libraries: a directory with an `index.json` that lists its files."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.source import Progress
from ingot.errors import CorruptFileError, FormatError, counted
from ingot.formats.foreign import ForeignFiles
from ingot.formats.indexed import Indexing, StoredFile, open_native
from ingot.formats.options import Options
from ingot.records import Damage, Verification

INDEX = "index.json"
_INDEX_BYTES = 256 << 20
_NAME_MAX = 255


@dataclass(frozen=True, slots=True)
class Shard:
    """A file that an `index.json` lists.

    Attributes:
        name: Its name in the directory, as it is stored.
        rows: The number of its rows.
        nbytes: Its size, if that is listed.
        compression: How it is compressed as a whole; None if it is not.
        unpacked_nbytes: Its size without compression, if that is listed.
    """

    name: str
    rows: int
    nbytes: int | None = None
    compression: str | None = None
    unpacked_nbytes: int | None = None


class Check(Protocol):
    """Verifies the checksums that are listed of a file."""

    def __call__(self, folder: Path, name: str, *, strict: bool) -> Iterator[None]:
        """Yield between steps of the work.

        Args:
            folder: The directory.
            name: The file.
            strict: Whether checksums that cannot be computed here are an error.

        Raises:
            CorruptFileError: The file has another checksum.
            FormatError: A checksum cannot be computed here.
        """


@dataclass(frozen=True, slots=True)
class Listed:
    """What an `index.json` says.

    Attributes:
        format: The name of the format.
        title: What a user calls such a directory, with an article.
        details: What the engine must know to find the rows in a file.
        shards: The files, in order.
        check: Verifies the checksums that are listed of a file, step by step.
    """

    format: str
    title: str
    details: Mapping[str, Any]
    shards: Sequence[Shard]
    check: Check


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
    if path.stat().st_size > _INDEX_BYTES:
        message = f"{path}: it has more than {_INDEX_BYTES} bytes"
        raise FormatError(message, str(path))
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        message = f"{path}: this is not JSON: {error}"
        raise FormatError(message, str(path)) from error
    return parse(folder, found) if isinstance(found, dict) else None


def _is_short(name: str) -> bool:
    """Return whether a file may have a name, whatever the system says."""
    return "\0" not in name and len(name.encode(errors="replace")) <= _NAME_MAX


def check_name(name: object, folder: Path) -> str:
    """Return the name of a listed file.

    Raises:
        FormatError: It leads out of the directory, or no file has such a name.
    """
    is_name = isinstance(name, str) and name not in {"", ".", ".."} and Path(name).name == name
    if not isinstance(name, str) or not is_name or not _is_short(name):
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
    files = [_stored(place, shard) for shard in listed.shards]
    paths = [path for path, *_ in files]

    def admit(number: int) -> Iterator[None]:
        return listed.check(place, listed.shards[number].name, strict=False)

    indexing = Indexing.of(options, listed.format, **listed.details)
    native, spec = open_native(files, indexing, folder, admit)
    if native is None:
        message = f"{folder}: {listed.title} always has fields"
        raise FormatError(message, folder)
    for shard, found in zip(listed.shards, native.row_counts(), strict=True):
        check_rows(place, shard, found)
    origin = ForeignFiles(listed.format, paths, folder, open_listed, (folder, parse, options))
    allow_pickle = options.allow_pickle
    source = ListedSource.of(native, paths[0], origin, allow_pickle=allow_pickle, spec=spec)
    source.listed = listed
    return source


def check_rows(folder: Path, shard: Shard, found: int) -> None:
    """Refuse a file that has other rows than are listed.

    Raises:
        CorruptFileError: It has.
    """
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


def _stored(folder: Path, shard: Shard) -> StoredFile:
    return str(stored_file(folder, shard)), shard.compression, shard.unpacked_nbytes


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
                for _ in self.listed.check(Path(self.path), shard.name, strict=True):
                    pass
            except CorruptFileError as error:
                damaged.append(Damage(None, 0, 0, str(error)))
        return replace(found, damaged=damaged)
