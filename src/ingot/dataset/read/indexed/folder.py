"""Data sets of other libraries: a directory with an `index.json` that lists its files."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from ingot._core import Rows as NativeRows
from ingot.dataset.read.foreign import ForeignFiles
from ingot.dataset.read.indexed.files import Indexing, open_native
from ingot.dataset.read.indexed.unpacking import StoredFile
from ingot.dataset.read.ingot_source import IngotSource
from ingot.errors import CorruptFileError, FormatError, counted
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
        title: What a user calls such a directory, with an article.
        layout: The layout of the rows, as the engine takes it: JSON.
        shards: The files, in order.
        check: Verifies the checksums that are listed of a file, step by step.
        holds_arrow: Whether the first file holds an Arrow file, so that no layout finds its rows.
    """

    title: str
    layout: str
    shards: Sequence[Shard]
    check: Check
    holds_arrow: bool = False


def read_index(folder: Path) -> Any:
    """Return the content of an `index.json`; None if there is none, or it is something else.

    Raises:
        FormatError: It is not JSON.
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
    return found if isinstance(found, dict) else None


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


@dataclass(frozen=True, slots=True)
class Folder(ForeignFiles):
    """A directory with an `index.json`, as the origin of rows.

    Attributes:
        name: The directory.
        paths: The files.
        indexing: How they are opened.
    """

    name: str
    paths: Sequence[str]
    indexing: Indexing

    def again(
        self, native: NativeRows, *, allow_pickle: bool
    ) -> tuple[Callable[..., IngotSource], tuple[Any, ...]]:
        """Return what opens the same directory again."""
        del allow_pickle
        return _reopen, (self.name, self.indexing, self.identity(native))


def _reopen(folder: str, indexing: Indexing, identity: str) -> IngotSource:
    """Open the directory that was pickled.

    Raises:
        FormatError: Its files were replaced.
    """
    from ingot.dataset.read.indexed.listed import listed_in  # noqa: PLC0415 -- it imports this module

    listed = listed_in(Path(folder))
    opened = None if listed is None else open_folder(Path(folder), listed, indexing)
    if opened is None or opened.identity != identity:
        message = f"{folder}: the files were replaced since the data set was pickled"
        raise FormatError(message, folder)
    return opened


def open_folder(folder: Path, listed: Listed, indexing: Indexing) -> IngotSource:
    """Open the files that an `index.json` lists.

    Raises:
        FormatError: A file is missing, damaged, or has other rows than are listed.
    """
    if not listed.shards:
        message = f"{folder}: {INDEX} lists no files"
        raise FormatError(message, str(folder))
    files = [_stored(folder, shard) for shard in listed.shards]
    paths = [path for path, *_ in files]

    def admit(number: int) -> Iterator[None]:
        return listed.check(folder, listed.shards[number].name, strict=False)

    native, spec = open_native(files, indexing, listed.layout, str(folder), admit)
    if native is None:
        message = f"{folder}: {listed.title} always has fields"
        raise FormatError(message, str(folder))
    for shard, found in zip(listed.shards, native.row_counts(), strict=True):
        check_rows(folder, shard, found)
    origin = Folder(str(folder), paths, indexing)
    allow_pickle = indexing.allow_pickle
    source = FolderSource.of(native, paths[0], origin, allow_pickle=allow_pickle, spec=spec)
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


class FolderSource(IngotSource):
    """Rows of a directory with an `index.json`.

    Attributes:
        listed: What the `index.json` says.
    """

    listed: Listed

    def verify(self, progress: Callable[[int, int], object] | None) -> Verification:
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
