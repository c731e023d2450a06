"""Building a data set from inputs with a function, in parallel and resumable."""

import functools
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from ingot.codecs import Codec
from ingot.dataset import atomic
from ingot.dataset.build.inputs import Inputs, build_key_of, check_same
from ingot.dataset.build.maker import Maker, Task
from ingot.dataset.build.tally import Tally
from ingot.dataset.manifest import Manifest, Shard
from ingot.dataset.read.dataset import Dataset
from ingot.dataset.read.directory import Directory
from ingot.dataset.spec import Spec, SpecLike
from ingot.dataset.write import superseded
from ingot.dataset.write.journal import NAME as JOURNAL
from ingot.dataset.write.journal import Chunk, Journal, shards_in
from ingot.dataset.write.lease import Lease
from ingot.dataset.write.metadata import json_of
from ingot.dataset.write.shards import Compression, Options, limits
from ingot.dataset.write.target import check_vacant
from ingot.options import names_options
from ingot.processes import check_imported
from ingot.records.expand import absolute, check_target
from ingot.records.progress import Progress

_AGAIN = "pass resume=False to start over"
_REPLACE = "pass overwrite=True to replace it once the new one is finished"


@names_options
def build(
    path: str | os.PathLike[str],
    fn: Callable[[Any], Any],
    inputs: Iterable[Any],
    *,
    spec: SpecLike,
    codecs: Mapping[str, Codec] | Sequence[Codec] | None = None,
    workers: int | None = None,
    chunk: int | None = None,
    key: Callable[[Any], str] = repr,
    shard_bytes: int | str | None = None,
    shard_rows: int | None = None,
    compression: Compression = "auto",
    level: int = 3,
    metadata: dict[str, Any] | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress = True,
    sync: bool = True,
    keep_for: float = superseded.KEEP_S,
) -> Dataset:
    """Build a data set from the rows that a function returns for inputs; return it, open.

    `build` cuts the inputs into chunks. Worker processes make the rows of a chunk, encode them
    and write them to shards of that chunk; a journal records which chunks are finished. When
    all are finished, the data set appears in one step. If a build is interrupted for any
    reason, the same call makes the missing chunks. If the data set is finished, the call only
    opens it.

    The rows are in the order of the inputs, whatever the number of processes.

    Args:
        path: A directory.
        fn: Takes an input and returns a row, None, or an iterable of rows. Unless `workers`
            is 0, it must be at the top level of a module, so that workers can import it.
        inputs: A sequence or an iterable. An iterable is consumed once, a chunk at a time; a
            call that resumes goes through it from the beginning.
        spec: The fields, as for `DatasetWriter`.
        codecs: As for `DatasetWriter`.
        workers: The number of worker processes; None means one per core. With 0 this process
            does the work.
        chunk: The number of inputs per chunk; an interrupted chunk is made again. None means
            100, but at least 16 and at most 256 chunks; 1000 for an iterable without a length.
        key: Returns a text for each input, by which a call that resumes recognizes it.
        shard_bytes: As for `DatasetWriter`; each chunk has its own shards.
        shard_rows: As for `DatasetWriter`.
        compression: As for `DatasetWriter`.
        level: As for `DatasetWriter`.
        metadata: As for `DatasetWriter`.
        overwrite: Replace an existing data set when the new one is finished.
        resume: Whether to keep the chunks that an earlier call finished; False starts over.
        progress: True for a line on standard error, or a function that takes rows and bytes.
        sync: Whether to wait until each chunk is on the storage device.
        keep_for: As for `DatasetWriter`.

    Raises:
        FileExistsError: There is a data set that `build` did not make.
        ValueError: An earlier call began, or made, a different data set here.
        BlockingIOError: Another process is building this data set.
        WorkerError: A worker process died. Finished chunks are kept, as for any exception.
        Exception: Whatever the function raised, with a note that names the input.

    Example:
        >>> def row(path):
        ...     return {"image": path.read_bytes(), "name": path.stem}
        >>> files = sorted(Path("raw").glob("*.jpg"))
        >>> ds = ingot.build("cats", row, files, spec={"image": "jpg", "name": "utf8"})
        ... # doctest: +SKIP
    """
    if workers != 0:
        check_imported()
    folder = absolute(path)
    checked = Spec.of(spec, codecs)
    options = Options(compression, level, sync, *limits(shard_bytes, shard_rows))
    text = json_of({} if metadata is None else metadata)
    superseded.check_keep_for(keep_for)
    _check(folder, fn, inputs, workers, chunk)
    check_vacant(folder)
    source = Inputs(inputs, chunk, key)
    build_key = build_key_of(checked, text, fn, options, source)
    # A build that was killed after its commit has left a journal.
    is_left = (folder / JOURNAL).exists()
    if not overwrite and not is_left and _is_built(folder, build_key, source):
        return _opened(folder, checked)
    atomic.make(folder, sync=sync)
    with Journal(folder) as journal:
        lease = Lease(folder)
        maker = Maker(fn, folder, lease.token, checked, text, options)
        try:
            if overwrite or not _is_built(folder, build_key, source):
                _begin(
                    folder,
                    journal,
                    build_key,
                    start_over=overwrite,
                    resume=resume,
                    sync=sync,
                )
                _make_all(maker, journal, source, progress, workers)
                built = build_key | source.identity()
                _commit(maker, journal, built, keep_for, overwrite=overwrite)
            journal.remove()
        finally:
            lease.remove_unlisted({shard.name for shard in shards_in(folder)})
            lease.release()
    return _opened(folder, checked)


def _check(folder: Path, fn: Any, inputs: Any, workers: Any, chunk: Any) -> None:
    check_target(folder)
    if folder.suffix == superseded.SUFFIX:
        message = f"{folder}: build writes a directory; pass a path without {superseded.SUFFIX}"
        raise ValueError(message)
    if not callable(fn):
        raise TypeError(f"fn must be a function of one input, got {type(fn).__name__}")
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable):
        raise TypeError(f"inputs must be a list or another iterable, got {type(inputs).__name__}")
    for name, number, least in (("workers", workers, 0), ("chunk", chunk, 1)):
        if number is not None and (type(number) is not int or number < least):
            raise ValueError(f"{name} must be a number, {least} or more, got {number!r}")


def _is_built(folder: Path, build_key: dict[str, Any], source: Inputs) -> bool:
    """Whether the data set is already built."""
    found = Manifest.find(folder)
    if found is None:
        return False
    if found.build is None:
        raise FileExistsError(
            f"{folder}: the data set there was not made by build, or was changed since; {_REPLACE}"
        )
    for _ in source.tasks():
        pass
    check_same(folder, found.build, build_key | source.identity(), _REPLACE)
    return True


def _begin(
    folder: Path,
    journal: Journal,
    build_key: dict[str, Any],
    *,
    start_over: bool,
    resume: bool,
    sync: bool,
) -> None:
    """Write to the journal what is being built, unless it is already there."""
    if journal.begun == build_key and resume:
        return
    if journal.begun is not None and resume and not start_over:
        check_same(folder, journal.begun, build_key, _AGAIN)
    with atomic.locked(folder):
        superseded.supersede(folder, _names_in(journal), 0, sync=sync)
        journal.begin(build_key, sync=sync)
        superseded.clear(folder)


def _make_all(
    maker: Maker, journal: Journal, source: Inputs, progress: Progress, workers: int | None
) -> None:
    """Make the chunks that are missing in the journal."""
    tally = Tally(journal, progress, str(maker.folder), source.total)
    tasks = _missing(maker.folder, journal, source)
    count = _cores() if workers is None else workers
    made = _alone(maker, tasks, tally) if count == 0 else _together(maker, tasks, tally, count)
    try:
        with closing(made):
            for task, shards in made:
                chunk = Chunk(task.number, len(task.inputs), task.digest, shards)
                journal.add(chunk, sync=maker.options.sync)
                tally.add(chunk)
    except BaseException as error:
        if journal.chunks:
            error.add_note(
                f"{maker.folder}: {len(journal.chunks)} chunks of {source.chunk} inputs are "
                "finished; the same call resumes from there"
            )
        raise
    if any(number >= source.num_chunks for number in journal.chunks):
        raise ValueError(
            f"{maker.folder}: an earlier call had more than {source.num_inputs} inputs; {_AGAIN}"
        )
    tally.finish()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _missing(folder: Path, journal: Journal, source: Inputs) -> Iterator[Task]:
    """Yield the chunks to make, including those whose files are missing or truncated."""
    for task in source.tasks():
        known = journal.chunks.get(task.number)
        if known is None:
            yield task
            continue
        if (known.inputs, known.digest) != (len(task.inputs), task.digest):
            last = task.first + len(task.inputs) - 1
            message = f"{folder}: inputs {task.first} to {last} differ from last time; {_AGAIN}"
            raise ValueError(message)
        paths = [folder / shard.name for shard in known.shards]
        sizes = [path.stat().st_size if path.is_file() else None for path in paths]
        if sizes != [shard.nbytes for shard in known.shards]:
            superseded.remove(folder, [shard.name for shard in known.shards])
            yield task


_Made: TypeAlias = Generator[tuple[Task, tuple[Shard, ...]], None, None]


def _alone(maker: Maker, tasks: Iterator[Task], tally: Tally) -> _Made:
    state = [-1, 0, 0]
    for task in tasks:
        yield task, maker.make(task, state, functools.partial(tally.tell, [(task, state)]))


def _together(maker: Maker, tasks: Iterator[Task], tally: Tally, count: int) -> _Made:
    from ingot.dataset.build.workers import Workers  # noqa: PLC0415 -- it loads multiprocessing

    yield from Workers(maker, count).run(tasks, tally.tell)


def _commit(
    maker: Maker, journal: Journal, built: dict[str, Any], keep_for: float, *, overwrite: bool
) -> None:
    """Commit all shards as the data set."""
    sync = maker.options.sync
    shards = [shard for _, chunk in sorted(journal.chunks.items()) for shard in chunk.shards]
    if not shards:
        writer = maker.writer(0)
        writer.finish(at_least_one=True)
        shards = writer.finished
    new = Manifest(dict(maker.spec), tuple(shards), json.loads(maker.metadata), build=built)
    with atomic.locked(maker.folder):
        found = Manifest.find(maker.folder)
        if found is not None and not overwrite:
            message = f"{maker.folder}: meanwhile another writer has made a data set here"
            raise FileExistsError(message)
        old = {shard.name for shard in found.shards} if found is not None else set()
        superseded.supersede(maker.folder, old, keep_for, sync=sync)
        new.commit(maker.folder, found, overwrite=True, sync=sync)
        superseded.clear(maker.folder)


def _names_in(journal: Journal) -> set[str]:
    return {shard.name for chunk in journal.chunks.values() for shard in chunk.shards}


def _opened(folder: Path, spec: Spec) -> Dataset:
    return Dataset(Directory.read(folder).open(spec=spec.shut()))
