"""Writing a target: piece by piece, checked, then under its name."""

import os
from dataclasses import dataclass
from pathlib import Path

from ingot.conversion.checking import check
from ingot.conversion.draft import Draft
from ingot.conversion.replacing import check_target
from ingot.dataset.read.iteration import Ranges, ReadAhead
from ingot.dataset.write.shards import Compression
from ingot.errors import FormatError
from ingot.formats.content import Content, pace_of
from ingot.formats.ingot.sink import build_directory
from ingot.formats.sink import Sink, Stream
from ingot.formats.table import Format, load
from ingot.records.progress import Progress, Report, reporter

_THREADS_MAX = 4


@dataclass(frozen=True, slots=True)
class Job:
    """How a conversion is done; see `convert`."""

    compression: Compression = "auto"
    sync: bool = True
    shard_bytes: int = 10**9
    check: bool = True
    workers: int | None = None
    resume: bool = True
    progress: Progress = None

    @property
    def threads(self) -> int:
        """How many threads read ahead."""
        cores = min(_THREADS_MAX, os.cpu_count() or 1)
        return max(1, cores if self.workers is None else self.workers)

    def report(self, verb: str) -> Report | None:
        """Return where progress goes."""
        return reporter(self.progress, verb, "records")


def transfer(
    content: Content,
    chosen: Format,
    target: Path,
    job: Job,
    sources: list[str],
    *,
    overwrite: bool,
) -> set[str]:
    """Write the target, check it, and give it its name.

    Args:
        content: What is written.
        chosen: The format.
        target: Where to.
        job: How.
        sources: The files that are read, by which an interrupted conversion is recognized.
        overwrite: Whether to replace an existing target.

    Returns:
        The fields whose numbers were rounded.

    Raises:
        FileExistsError: There is a target, and `overwrite` is not given or it may not be replaced.
    """
    check_target(target, overwrite=overwrite)
    with Draft(target) as draft:
        keeps = is_begun = False
        rounded: set[str] = set()
        try:
            check_target(target, overwrite=overwrite)
            if chosen.name == "directory":
                if not job.resume:
                    draft.clear()
                keeps, is_begun = True, draft.is_begun
                _build(content, draft, job, sources)
                keeps = False
                if job.check:
                    _check(content, draft.path, None, job)
            else:
                rounded = _write_file(content, chosen, draft, job)
            draft.publish(overwrite=overwrite, sync=job.sync)
        except (FormatError, TypeError, ValueError):
            keeps = keeps and is_begun  # The same call would fail again.
            raise
        finally:
            if not keeps:
                draft.remove()
    return rounded


def _build(content: Content, draft: Draft, job: Job, sources: list[str]) -> None:
    report = job.report("converted")
    total = len(content)
    build_directory(
        draft.path,
        content,
        job,
        shard_bytes=job.shard_bytes,
        workers=job.workers,
        resume=job.resume,
        progress=None if report is None else lambda rows, _: report(rows, total),
        sources=sources,
    )


def _write_file(content: Content, chosen: Format, draft: Draft, job: Job) -> set[str]:
    draft.clear()
    place = chosen.records if content.fields is None else chosen.rows
    sink: Sink = load(place or "")(draft.path, content, job)
    try:
        _fill(content, sink, job)
        sink.finish()
    except BaseException:
        sink.abandon()
        raise
    if job.check:
        _check(content, draft.path, sink, job)
    return sink.rounded if isinstance(sink, Stream) else set()


def _fill(content: Content, sink: Sink, job: Job) -> None:
    report, total = job.report("converted"), len(content)
    take, pace = Ranges(range(total)).take, pace_of(total, content.nbytes)
    with ReadAhead(lambda rows: sink.read(content, rows), take, pace, job.threads) as pieces:
        for rows, piece in pieces:
            sink.add(rows, piece)
            if report is not None:
                report(rows.stop, total)


def _check(content: Content, path: Path, sink: Sink | None, job: Job) -> None:
    check(path, content, sink, workers=job.threads, report=job.report("checked"))
