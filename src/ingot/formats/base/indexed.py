"""Files of other formats that the engine reads in place, most of them by an index of ours."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ingot._core import Rows as NativeRows
from ingot.codecs import Pickle
from ingot.dataset.read.ingot_source import IngotSource
from ingot.dataset.read.source import identity_of
from ingot.dataset.spec import Spec
from ingot.errors import FormatError, StorageError, printable
from ingot.formats.base.options import Options
from ingot.formats.table import COMPRESSIONS, format_named
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
class ForeignFiles:
    """Files of another format, as the origin of rows.

    Attributes:
        format: The name of the format.
        paths: The files.
        path: What errors call them: the directory, pattern or file that was opened.
        opener: Opens them again, in another process.
    """

    format: str
    paths: Sequence[str]
    path: str
    opener: Callable[[], IngotSource | None]

    @property
    def is_checked(self) -> bool:
        """Whether checksums in the files cover every value."""
        return format_named(self.format).is_checked

    def metadata_json(self, native: NativeRows) -> str:
        """Return no metadata: these formats have none."""
        return native.metadata_json()

    def nbytes(self, native: NativeRows) -> int:
        """Return the size of the files, without their indexes."""
        return native.figures()[1]

    def identity(self, native: NativeRows) -> str:
        """Return what tells these files from others, and from their successors."""
        return identity_of(native.ids())

    def again(
        self, native: NativeRows, *, allow_pickle: bool
    ) -> tuple[Callable[..., IngotSource], tuple[Any, ...]]:
        """Return what opens the same files again."""
        del allow_pickle
        return _reopen, (self.path, self.opener, self.identity(native))


def _reopen(path: str, opener: Callable[[], IngotSource | None], identity: str) -> IngotSource:
    opened = opener()
    if opened is None or opened.identity != identity:
        message = f"{path}: the files were replaced since the data set was pickled"
        raise FormatError(message, path)
    return opened


def open_indexed(
    format: str,  # noqa: A002
    paths: Sequence[str],
    name: str,
    options: Options,
    /,
    **layout: object,
) -> IngotSource | None:
    """Open files of another format; build the indexes that are missing or stale.

    Args:
        format: The name of the format.
        paths: The files, which may be compressed as a whole.
        name: What errors call them: the directory, pattern or file that was opened.
        options: How to open them.
        layout: What the engine must know to find the rows; the format, if the engine has another
            name for it.

    Returns:
        The rows; None if no specification is given and the records have no fields, and for
        Ingot's own files, which may have any name.

    Raises:
        FormatError: A file is damaged, or its rows do not fit the specification.
    """
    stored = [(path, COMPRESSIONS.get(Path(path).suffix.lower()), None) for path in paths]
    native, spec = open_native(stored, {"format": format} | layout, options, name)
    if native is None:
        return None
    opener = partial(open_indexed, format, list(paths), name, options, **layout)
    files = ForeignFiles(format, list(paths), name, opener)
    return IngotSource.of(native, paths[0], files, allow_pickle=options.allow_pickle, spec=spec)


def open_native(
    files: Sequence[StoredFile],
    layout: dict[str, object],
    options: Options,
    name: str,
    admit: Callable[[int], Iterable[object]] | None = None,
) -> tuple[NativeRows | None, Spec | None]:
    """Open files by their indexes, and build those that are missing or stale.

    Args:
        files: The files, and how they are compressed.
        layout: How rows are laid out, as the engine takes it.
        options: How to open them.
        name: What progress is reported about.
        admit: Called with the number of a file before anything is made of it; what it returns is
            iterated over.

    Returns:
        The rows, None if the records have no fields; and the specification, if one is given.

    Raises:
        StorageError: A directory is in the place of an index or of a decompressed copy.
    """
    spec = None
    if options.spec is not None:
        spec = Spec.of(options.spec, [Pickle(allowed=options.allow_pickle)])
    fields = None if spec is None else spec.stored()
    try:
        native = NativeRows.indexed(
            files, json.dumps(layout), fields, options.index_dir, _progress(name), admit
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
