"""Rows to Ingot files: as they are stored where both ends share the types, else encoded."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ingot.codecs import Codec
from ingot.dataset.build.build import build
from ingot.dataset.read.iteration import Ranges, size_of
from ingot.dataset.spec import Spec
from ingot.dataset.write.packed import PackedRows
from ingot.dataset.write.writer import DatasetWriter
from ingot.formats.base.content import Content, Piece, fingerprint, pace_of
from ingot.formats.base.sink import Sink, Writing

_PARTS = 16
_PART_BYTES = 32 << 20
_ALONE_BYTES = 64 << 20
"""Up to this size, starting processes takes longer than the work."""

_ALONE_COPIED_BYTES = 400 << 20
"""The same for rows that are copied as they are stored: so much takes as long as one process."""


def codecs_of(spec: Spec) -> dict[str, Codec]:
    """Return the codecs of a specification by their names."""
    return {one.codec.name: one.codec for one in spec.fields.values()}


class IngotRows(Sink):
    """Rows on their way to one Ingot file."""

    def __init__(self, path: Path, content: Content, options: Writing) -> None:
        super().__init__(path, content, options)
        self.spec = Spec(self._fields)
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
        return content.packed(self.spec, rows) or content.read(rows)

    def add(self, rows: range, piece: Piece) -> None:
        """Append rows."""
        del rows
        for some in piece if isinstance(piece, list) else [piece]:
            self._writer.extend(some)


def build_directory(
    path: Path,
    content: Content,
    options: Writing,
    sources: list[str],
) -> None:
    """Build a data set in a directory, in parallel; the same call resumes an interrupted one.

    Parts have their own files, so the files have at most `shard_bytes`; a small data set is
    still cut into parts, for the processes to share.

    Raises:
        ValueError: An earlier call converted something else here.
    """
    spec = Spec(content.fields or {})
    total, report = len(content), options.report("converted")
    workers, shard_bytes = options.workers, options.shard_bytes
    part_bytes = min(shard_bytes, max(_PART_BYTES, content.nbytes // _PARTS))
    rows = max(1, total * part_bytes // max(1, content.nbytes))
    parts = [range(k, min(k + rows, total)) for k in range(0, total, rows)]
    mark = fingerprint(content, sources)
    is_copied = total > 0 and content.packed(spec, range(1)) is not None
    if workers is None and content.nbytes <= (_ALONE_COPIED_BYTES if is_copied else _ALONE_BYTES):
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
        resume=options.resume,
        progress=None if report is None else lambda done, _: report(done, total),
        sync=options.sync,
    ).close()


def copy_rows(content: Content, spec: Spec, part: range) -> Iterator[PackedRows]:
    """Yield a part of the rows as they are stored in Ingot files."""
    ranges, pace = Ranges(part), pace_of(len(content), content.nbytes)
    while rows := ranges.take(pace.count):
        found = content.encoded(spec, rows)
        pace.learn(len(rows), size_of(found))
        yield from found
