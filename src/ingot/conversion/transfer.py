"""Writing a target: piece by piece, checked, then under its name."""

from pathlib import Path

from ingot.conversion.check import check
from ingot.conversion.draft import Draft, check_target
from ingot.dataset.read.ahead import Ranges, ReadAhead
from ingot.errors import FormatError
from ingot.formats.base.content import Content, pace_of
from ingot.formats.base.sink import Sink, Stream, Writing
from ingot.formats.table import Format, load


def transfer(
    content: Content,
    chosen: Format,
    target: Path,
    job: Writing,
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
            if chosen.build is not None:
                if not job.resume:
                    draft.clear()
                keeps, is_begun = True, draft.is_begun
                load(chosen.build)(draft.path, content, job, sources)
                keeps = False
                if job.check:
                    check(draft.path, content, None, job)
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


def _write_file(content: Content, chosen: Format, draft: Draft, job: Writing) -> set[str]:
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
        check(draft.path, content, sink, job)
    return sink.rounded if isinstance(sink, Stream) else set()


def _fill(content: Content, sink: Sink, job: Writing) -> None:
    report, total = job.report("converted"), len(content)
    take, pace = Ranges(range(total)).take, pace_of(total, content.nbytes)
    with ReadAhead(lambda rows: sink.read(content, rows), take, pace, job.threads) as pieces:
        for rows, piece in pieces:
            sink.add(rows, piece)
            if report is not None:
                report(rows.stop, total)
