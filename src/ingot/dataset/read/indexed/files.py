"""Files that an index finds the rows of."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ingot._core import Rows as NativeRows
from ingot.codecs import Pickle
from ingot.dataset.read.foreign import ForeignFiles
from ingot.dataset.read.indexed.progress import index_progress
from ingot.dataset.read.indexed.unpacking import StoredFile, stored_as
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.spec import Spec, SpecLike
from ingot.errors import FormatError, StorageError


@dataclass(frozen=True, slots=True)
class Indexing:
    """How to open files of another format.

    Attributes:
        layout: The layout of the rows, as the engine takes it: JSON.
        spec: The fields to read and their types; None to infer them.
        index_dir: The directory for indexes; None for the usual places.
        allow_pickle: Whether to read fields that are stored as pickle.
    """

    layout: str
    spec: SpecLike | None = None
    index_dir: str | None = None
    allow_pickle: bool = False


@dataclass(frozen=True, slots=True)
class IndexedFiles(ForeignFiles):
    """Files of another format, as the origin of rows.

    Attributes:
        paths: The files.
        indexing: How they are opened.
        name: What errors call them: the directory, pattern or file that was opened.
    """

    paths: Sequence[str]
    indexing: Indexing
    name: str

    def again(
        self, native: NativeRows, *, allow_pickle: bool
    ) -> tuple[Callable[..., IngotSource], tuple[Any, ...]]:
        """Return what opens the same files again."""
        indexing = replace(self.indexing, allow_pickle=allow_pickle)
        return _reopen, (replace(self, indexing=indexing), self.identity(native))


def _reopen(files: IndexedFiles, identity: str) -> IngotSource:
    """Open the files that were pickled.

    Raises:
        FormatError: They were replaced.
    """
    opened = open_indexed(files.paths, files.indexing, files.name)
    if opened is None or files.identity(opened.native) != identity:
        message = f"{files.path}: the files were replaced since the data set was pickled"
        raise FormatError(message, files.path)
    return opened


def open_indexed(paths: Sequence[str], indexing: Indexing, name: str) -> IngotSource | None:
    """Open files of another format; build the indexes that are missing or stale.

    Args:
        paths: The files, which may be compressed as a whole.
        indexing: How to open them.
        name: What errors call them: the directory, pattern or file that was opened.

    Returns:
        The rows; None if no specification is given and the records have no fields.

    Raises:
        FormatError: A file is damaged, or its rows do not fit the specification.
    """
    native, spec = open_native(stored_as(paths), indexing, indexing.layout, name)
    if native is None:
        return None
    files = IndexedFiles(list(paths), indexing, name)
    allow_pickle = indexing.allow_pickle
    return IngotSource.of(native, paths[0], files, allow_pickle=allow_pickle, spec=spec)


def open_native(
    files: Sequence[StoredFile],
    indexing: Indexing,
    layout: str,
    name: str,
    admit: Callable[[int], Iterable[object]] | None = None,
) -> tuple[NativeRows | None, Spec | None]:
    """Open files by their indexes, and build those that are missing or stale.

    Args:
        files: The files, and how they are compressed.
        indexing: How to open them.
        layout: The layout of their rows.
        name: What progress is reported about.
        admit: Called with the number of a file before anything is made of it; what it returns is
            iterated over.

    Returns:
        The rows, None if the records have no fields; and the specification, if one is given.

    Raises:
        StorageError: A directory is in the place of an index or of a decompressed copy.
    """
    spec = None
    if indexing.spec is not None:
        spec = Spec.of(indexing.spec, [Pickle(allowed=indexing.allow_pickle)])
    fields = None if spec is None else spec.stored()
    progress = index_progress(name)
    try:
        native = NativeRows.indexed(files, layout, fields, indexing.index_dir, progress, admit)
    except IsADirectoryError as error:
        place = str(error.filename)
        if any(place == path for path, *_ in files):
            raise
        message = f"{place}: expected a file of the cache, found a directory; remove it"
        raise StorageError(message, place, errno=error.errno) from error
    return native, spec
