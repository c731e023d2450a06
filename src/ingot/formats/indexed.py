"""Files of other formats that an index finds the rows of."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingot._core import Rows as NativeRows
from ingot.codecs import Pickle
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.spec import Spec, SpecLike
from ingot.errors import StorageError, printable
from ingot.formats.foreign import ForeignFiles
from ingot.formats.options import Options
from ingot.formats.table import COMPRESSIONS
from ingot.records.progress import Line, Report

_LARGE = 1 << 30
_PATIENCE_S = 1.0

_logger = logging.getLogger(__name__)

StoredFile = tuple[str, str | None, int | None]
"""A file, how it is compressed as a whole, and how many bytes it decompresses to, if known.

Compressed files are decompressed into `index_dir`, by default the user's cache directory. The
copies stay there, so this is done once.
"""


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

    @classmethod
    def of(cls, options: Options, format: str, **details: object) -> "Indexing":  # noqa: A002
        """Return how to open files of a format, as the engine calls it."""
        layout = json.dumps({"format": format} | details)
        return cls(layout, options.spec, options.index_dir, options.allow_pickle)


def open_indexed(
    format: str,  # noqa: A002
    paths: Sequence[str],
    name: str,
    indexing: Indexing,
) -> IngotSource | None:
    """Open files of another format; build the indexes that are missing or stale.

    Args:
        format: The name of the format.
        paths: The files, which may be compressed as a whole.
        name: What errors call them: the directory, pattern or file that was opened.
        indexing: How to open them.

    Returns:
        The rows; None if no specification is given and the records have no fields, and for
        Ingot's own files, which may have any name.

    Raises:
        FormatError: A file is damaged, or its rows do not fit the specification.
    """
    stored = [(path, COMPRESSIONS.get(Path(path).suffix.lower()), None) for path in paths]
    native, spec = open_native(stored, indexing, name)
    if native is None:
        return None
    arguments = (format, list(paths), name, indexing)
    files = ForeignFiles(format, list(paths), name, open_indexed, arguments)
    allow_pickle = indexing.allow_pickle
    return IngotSource.of(native, paths[0], files, allow_pickle=allow_pickle, spec=spec)


def open_native(
    files: Sequence[StoredFile],
    indexing: Indexing,
    name: str,
    admit: Callable[[int], Iterable[object]] | None = None,
) -> tuple[NativeRows | None, Spec | None]:
    """Open files by their indexes, and build those that are missing or stale.

    Args:
        files: The files, and how they are compressed.
        indexing: How to open them.
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
    progress = _progress(name)
    try:
        native = NativeRows.indexed(
            files, indexing.layout, fields, indexing.index_dir, progress, admit
        )
    except IsADirectoryError as error:
        place = str(error.filename)
        if any(place == path for path, *_ in files):
            raise
        message = f"{place}: expected a file of the cache, found a directory; remove it"
        raise StorageError(message, place, errno=error.errno) from error
    return native, spec


def _progress(path: str) -> Report:
    """Return the function to call with the bytes done and the total.

    It writes a line to standard error now and then if there are many bytes. The total is 0 while
    another process does the work; a line is logged once this has waited for a second.
    """
    line = Line()
    waiting_since: float | None = None
    is_logged = False

    def report(done: int, total: int) -> None:
        nonlocal waiting_since, is_logged
        if total == 0 and not is_logged:
            now = time.monotonic()
            waiting_since = now if waiting_since is None else waiting_since
            if is_logged := now - waiting_since > _PATIENCE_S:
                _logger.warning(
                    "%s: waiting for another process, which indexes or decompresses files here",
                    printable(path),
                )
        if total >= _LARGE and (line.is_due() or done == total):
            share = f"{done / 1e9:,.1f} of {total / 1e9:,.1f} GB"
            line.write(f"{printable(path)}: indexed {share}", is_last=done == total)

    return report
