"""Rows to Ingot files: as they are stored where both ends share the types, else encoded."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ingot.codecs import Codec
from ingot.dataset.build.build import build
from ingot.dataset.read.iteration import Ranges, size_of
from ingot.dataset.spec import Spec
from ingot.dataset.write import columns
from ingot.dataset.write.packed import PackedRows
from ingot.dataset.write.writer import DatasetWriter
from ingot.formats.content import Content, Piece, Rows, fingerprint, pace_of
from ingot.formats.sink import Writing
from ingot.records.progress import Progress

_PARTS = 16
_PART_BYTES = 32 << 20
_ALONE_BYTES = 64 << 20
"""Up to this size, starting processes takes longer than the work."""

_ALONE_COPIED_BYTES = 400 << 20
"""The same for rows that are copied as they are stored: so much takes as long as one process."""


def codecs_of(spec: Spec) -> dict[str, Codec]:
    """Return the codecs of a specification by their names."""
    return {one.codec.name: one.codec for one in spec.fields.values()}


class IngotRows:
    """Rows on their way to one Ingot file."""

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        self.spec = Spec(content.fields or {})
        self._writer = DatasetWriter(
            path,
            self.spec,
            codecs=codecs_of(self.spec),
            metadata=content.metadata,
            compression=options.compression,
            sync=options.sync,
        )

    def read(self, content: Content, rows: range) -> Piece:
        """Read rows as they are stored, if both ends share the types."""
        return stored(content, self.spec, rows) or content.read(rows)

    def add(self, rows: range, piece: Piece) -> None:
        """Append rows."""
        del rows
        for some in piece if isinstance(piece, list) else [piece]:
            self._writer.extend(some)

    def finish(self) -> None:
        """Finish the file."""
        self._writer.close()

    def abandon(self) -> None:
        """Stop writing."""
        self._writer.abandon()


def stored(content: Content, spec: Spec, rows: range) -> list[PackedRows] | None:
    """Read rows as they are stored; None if they must be decoded."""
    return content.packed(spec, rows) if isinstance(content, Rows) else None


def build_directory(
    path: Path,
    content: Content,
    options: Writing,
    *,
    shard_bytes: int,
    workers: int | None,
    resume: bool,
    progress: Progress,
    sources: list[str],
) -> None:
    """Build a data set in a directory, in parallel; the same call resumes an interrupted one.

    Parts have their own files, so the files have at most `shard_bytes`; a small data set is
    still cut into parts, for the processes to share.

    Raises:
        ValueError: An earlier call converted something else here.
    """
    spec = Spec(content.fields or {})
    part_bytes = min(shard_bytes, max(_PART_BYTES, content.nbytes // _PARTS))
    rows = max(1, len(content) * part_bytes // max(1, content.nbytes))
    parts = [range(k, min(k + rows, len(content))) for k in range(0, len(content), rows)]
    mark = fingerprint(content, sources)
    if workers is None and content.nbytes <= _alone_bytes(content, spec):
        workers = 0
    build(
        path,
        partial(copy_rows, content, spec),
        parts,
        spec=spec,
        codecs=codecs_of(spec),
        workers=workers,
        chunk=1,
        key=lambda part: f"{mark} {part}",
        shard_bytes=shard_bytes,
        compression=options.compression,
        metadata=content.metadata,
        resume=resume,
        progress=progress,
        sync=options.sync,
    ).close()


def _alone_bytes(content: Content, spec: Spec) -> int:
    """Return the size up to which this process does the work."""
    is_copied = len(content) > 0 and stored(content, spec, range(1)) is not None
    return _ALONE_COPIED_BYTES if is_copied else _ALONE_BYTES


def copy_rows(content: Content, spec: Spec, part: range) -> Iterator[PackedRows]:
    """Yield a part of the rows as they are stored in Ingot files."""
    ranges, pace = Ranges(part), pace_of(len(content), content.nbytes)
    while rows := ranges.take(pace.count):
        found = stored(content, spec, rows)
        if found is None:
            found = [columns.encode(spec, rows.start, content.read(rows), check=False)]
        pace.learn(len(rows), size_of(found))
        yield from found
