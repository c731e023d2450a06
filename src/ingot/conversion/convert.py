"""Conversion of records and rows to another format."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ingot.conversion.check import check as check_written
from ingot.conversion.draft import Draft, check_target
from ingot.dataset import Dataset
from ingot.dataset.read.iteration import Ranges, ReadAhead
from ingot.dataset.spec import SpecLike
from ingot.dataset.write.shards import Compression, limits
from ingot.errors import FormatError
from ingot.formats.base.content import (
    RECORD,
    Content,
    Records,
    RecordsAsRows,
    RowsAsRecords,
    content_of,
    pace_of,
)
from ingot.formats.base.sink import Sink, Stream, Writing
from ingot.formats.table import Format, load, target_format
from ingot.opening import open as open_any
from ingot.options import names_options
from ingot.order import Order
from ingot.records import Reader, View
from ingot.records.expand import StrPath, absolute, named
from ingot.records.progress import Progress

Opened: TypeAlias = Dataset | Reader | View


@dataclass(frozen=True, slots=True)
class Conversion:
    """What `ingot.convert` has written.

    Attributes:
        path: The absolute path of the target.
        format: The name of its format.
        rows: The number of records or rows.
        nbytes: The size of the target.
        checked: Whether the target was compared with the source.
        left_out: Data sets of an HDF5 file that do not belong to its rows, and so were not
            converted.
        rounded: Fields that had numbers with more digits than the target holds: TFRecord has 32
            bits for a float.
    """

    __module__ = "ingot"

    path: str
    format: str
    rows: int
    nbytes: int
    checked: bool
    left_out: tuple[str, ...] = ()
    rounded: tuple[str, ...] = ()


@names_options
def convert(
    src: StrPath | Sequence[StrPath] | Opened,
    dst: StrPath,
    *,
    format: str | None = None,  # noqa: A002 -- the word that users know
    names: Sequence[str] | None = None,
    spec: SpecLike | None = None,
    shard_bytes: int | str = "1GB",
    compression: Compression = "auto",
    check: bool = True,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress = None,
    sync: bool = True,
) -> Conversion:
    """Copy records or rows from any format that `ingot.open` reads to any that Ingot writes.

    Values go along as they are stored where both formats store them alike: an image is never
    encoded again, and between Ingot files nothing is decoded at all. A record or a value that
    the target cannot hold is an error that names it, and nothing is written. Only digits of
    numbers may be lost, to TFRecord; the result then names the fields.

    The target appears under its name when it is finished, and, unless `check` is False, after
    all of it was read again and compared with the source. Until then it is in the folder
    `.NAME.converting` beside it. If a conversion to a data set directory is interrupted, the
    same call continues from the parts that are finished; any other one starts over.

    Args:
        src: What to convert, as for `ingot.open`; or an open data set or reader, or a part of
            one, such as `ds.where(...)`, `ds[100:200]` or `ds.select("a")`, which stays open.
        dst: The target. Its suffix tells the format: `.ingot`, `.ffr`, `.array_record`, `.bag`,
            `.bagz`, `.h5`, `.parquet`, `.tfrecord`, `.tar`, `.jsonl` or `.csv`; a path without a
            suffix is a data set directory.
        format: The name of the format. "granular" makes a path without a suffix a folder of
            Granular.
        names: The fields to convert, in this order; None for all. If records are converted to
            rows, the name of the field of bytes that they become, "record" by default.
        spec: The fields of the source and their types, as for `ingot.open`; for paths only.
        shard_bytes: The maximum size of the files in a data set directory.
        compression: How Ingot files are compressed, as for `Writer`.
        check: Whether to compare the target with the source.
        workers: For a data set directory, the number of processes; with 0 this process does the
            work. None means 0 up to 64 MB, or up to 400 MB if rows are copied as they are
            stored, else one per core, as for `ingot.build`. For a file, the number of threads
            that read ahead.
        overwrite: Replace an existing target when the new one is finished.
        resume: Whether to continue an interrupted conversion to a data set directory; False
            starts over.
        progress: Called with the number of records done and their total, first for writing,
            then for the check; True prints a line to standard error.
        sync: Whether to wait until the target is on the storage device.

    Raises:
        TypeError: The source is neither a path nor an open data set or reader.
        FileExistsError: The target exists, and `overwrite` is not given.
        ValueError: The target cannot hold what the source has, is inside the source or
            contains it, or has the suffix of no format.
        BlockingIOError: Another process is converting to this target.
        CorruptFileError: The source is damaged, or the check failed. No target is left.
        StorageError: The system refuses. No target is left.

    Example:
        >>> ingot.convert("train.array_record", "train.ingot")  # doctest: +SKIP
        >>> ingot.convert(ds.where("label == 3"), "threes.jsonl")  # doctest: +SKIP
    """
    target = absolute(dst)
    chosen = target_format(target, format)
    shard, _ = limits(shard_bytes, None)
    job = Writing(compression, sync, shard or 0, check, workers, resume, progress)
    with _opened(src, spec) as opened:
        sources = paths_of(src, opened)
        check_apart(sources, target)
        content = fitting(opened, chosen, names)
        left_out = opened.others if isinstance(opened, Dataset) else ()
        rounded = transfer(content, chosen, target, job, sources, overwrite=overwrite)
        return Conversion(
            str(target),
            chosen.name,
            len(content),
            _size(target),
            check,
            tuple(left_out),
            tuple(sorted(rounded)),
        )


def _opened(
    src: StrPath | Sequence[StrPath] | Opened, spec: SpecLike | None
) -> AbstractContextManager[Opened]:
    """Return what is converted, open; what was opened here is closed afterwards.

    Raises:
        TypeError: The source is an order.
        ValueError: The source is open, and `spec` is given.
    """
    if isinstance(src, Order):
        message = "expected a path, a reader or a data set, got Order: ds.take(rows) orders rows"
        raise TypeError(message)
    if not isinstance(src, Dataset | Reader | View):
        return closing(open_any(src, spec=spec))
    if spec is not None:
        message = f"{src.path}: spec= is for paths; pass it to ingot.open, which opened this"
        raise ValueError(message)
    return nullcontext(src)


def paths_of(src: StrPath | Sequence[StrPath] | Opened, opened: Opened) -> list[str]:
    """Return the files and folders that are read."""
    if isinstance(src, Dataset | Reader | View):
        return [src.path, *src.paths]
    folders = [str(one) for one in map(absolute, named(src)) if one.is_dir()]
    return [*folders, *opened.paths]


def check_apart(sources: Sequence[str], target: Path) -> None:
    """Refuse a target that is, contains or is inside a source."""
    whole = target.resolve()
    for path in sources:
        source = Path(path).resolve()
        if whole == source:
            message = f"{target}: the target is the source"
        elif source.is_relative_to(whole):
            message = f"{target}: the target contains the source {path}"
        elif Path(path).is_dir() and whole.is_relative_to(source):
            message = f"{target}: the target is inside the source {path}"
        else:
            continue
        raise ValueError(f"{message}; choose another path")


def fitting(
    opened: Reader | View | Dataset, chosen: Format, names: Sequence[str] | None
) -> Content:
    """Return what is converted in the form that the target holds.

    Raises:
        ValueError: The target cannot hold it.
        KeyError: There is no such field.
    """
    if isinstance(names, str):
        message = f"names must be a list of fields, got the text {names!r}"
        raise TypeError(message)
    content = content_of(opened, names)
    if isinstance(content, Records):
        if chosen.records is not None:
            if names is not None:
                message = f"{content.path}: records have no fields for names= to choose from"
                raise ValueError(message)
            return content
        if names is not None and len(names) != 1:
            message = f"{content.path}: records become one field, got the names {list(names)}"
            raise ValueError(message)
        return RecordsAsRows(content, RECORD if names is None else names[0])
    if chosen.rows is None and chosen.build is None:
        return RowsAsRecords(content, chosen.title)
    return content


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
        sink: Sink | None = None
        try:
            check_target(target, overwrite=overwrite)
            if chosen.build is not None:
                if not job.resume:
                    draft.clear()
                keeps, is_begun = True, draft.is_begun
                load(chosen.build)(draft.path, content, job, sources)
                keeps = False
            else:
                draft.clear()
                place = chosen.records if content.fields is None else chosen.rows
                sink = load(place or "")(draft.path, content, job)
                _fill(content, sink, job)
            if job.check:
                check_written(draft.path, content, sink, job)
            draft.publish(overwrite=overwrite, sync=job.sync)
        except (FormatError, TypeError, ValueError):
            keeps = keeps and is_begun  # The same call would fail again.
            raise
        finally:
            if not keeps:
                draft.remove()
    return sink.rounded if isinstance(sink, Stream) else set()


def _fill(content: Content, sink: Sink, job: Writing) -> None:
    report, total = job.report("converted"), len(content)
    take, pace = Ranges(range(total)).take, pace_of(total, content.nbytes)
    try:
        with ReadAhead(lambda rows: sink.read(content, rows), take, pace, job.threads) as pieces:
            for rows, piece in pieces:
                sink.add(rows, piece)
                if report is not None:
                    report(rows.stop, total)
        sink.finish()
    except BaseException:
        sink.abandon()
        raise


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(file.stat().st_size for file in files)
