"""A data set made of inputs by a function, in parallel, and resumed where it was stopped."""

import functools
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from ingot._core import Rows as NativeRows
from ingot.codecs import Codec
from ingot.dataset import folder as folders
from ingot.dataset.chunk import Maker, Task
from ingot.dataset.dataset import Dataset
from ingot.dataset.inputs import Inputs
from ingot.dataset.journal import NAME as JOURNAL
from ingot.dataset.journal import Chunk, Journal, shards_in
from ingot.dataset.manifest import Manifest, Shard
from ingot.dataset.metadata import json_of
from ingot.dataset.owner import SUFFIX, Owner, remove
from ingot.dataset.plan import check_same, plan_of
from ingot.dataset.progress import Meter, Progress
from ingot.dataset.shards import Compression, Options, limits
from ingot.dataset.spec import Spec, SpecLike
from ingot.dataset.stored import Stored
from ingot.dataset.vacancy import check_vacant
from ingot.errors import FormatError
from ingot.records.paths import absolute, check_target

_AGAIN = "pass resume=False to start over"
_REPLACE = "pass overwrite=True to replace it once the new one is finished"


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
) -> Dataset:
    """Make a data set of the rows that a function makes of inputs; return it, open.

    The inputs are cut into chunks. Processes make the rows of a chunk, encode them, and write
    them to shards of its own; a journal keeps which chunks are finished. When all are, the
    data set appears at once. If this is interrupted in whatever way, the same call goes on with
    the chunks that are missing; if the data set is finished, it is opened and nothing is done.

    The rows are in the order of the inputs, whatever the number of processes.

    Args:
        path: A directory.
        fn: Is given an input, and returns a row, None, or an iterable of rows. Unless
            `workers` is 0, it must be at the top of a module, so that processes can import it.
        inputs: A sequence or an iterable. An iterable is consumed once, a chunk at a time; a
            call that resumes goes through it again from its beginning.
        spec: The fields, as for `DatasetWriter`.
        codecs: As for `DatasetWriter`.
        workers: How many processes; as many as there are cores if None. With 0 this process
            does the work.
        chunk: How many inputs are worked on together, and done again if that is interrupted.
            If None, a 256th of the inputs; of an iterable without a length 1000.
        key: Gives a text for each input, by which a call that resumes knows it again.
        shard_bytes: As for `DatasetWriter`; each chunk has shards of its own.
        shard_rows: Likewise.
        compression: Likewise.
        level: Likewise.
        metadata: Likewise.
        overwrite: Take the place of what is there, when all is finished.
        resume: Whether to go on with what an earlier call has finished; False starts over.
        progress: True for a line on standard error, or a function of rows and bytes.
        sync: Whether to wait until the device has the bytes of each chunk.

    Raises:
        FileExistsError: There is a data set that `build` has not made.
        ValueError: An earlier call has begun, or made, something else here.
        BlockingIOError: Another process builds this data set.
        WorkerError: A process died. What is finished is kept, here and below.
        Exception: What the function has raised, with a note that names the input.

    Example:
        >>> def row(path):
        ...     return {"image": path.read_bytes(), "name": path.stem}
        >>> files = sorted(Path("raw").glob("*.jpg"))
        >>> ds = ingot.build("cats", row, files, spec={"image": "jpg", "name": "utf8"})
        ... # doctest: +SKIP
    """
    folder = absolute(path)
    checked = Spec.of(spec, codecs)
    options = Options(compression, level, sync, *limits(shard_bytes, shard_rows))
    text = json_of({} if metadata is None else metadata)
    _check(folder, fn, inputs, workers, chunk)
    check_vacant(folder)
    source = Inputs(inputs, chunk, key)
    plan = plan_of(checked, text, fn, options, source)
    # Who was killed behind its last commit has left a journal.
    is_left = (folder / JOURNAL).exists()
    if not overwrite and not is_left and _is_built(folder, plan, source):
        return _opened(folder, checked)
    folder.mkdir(parents=True, exist_ok=True)
    with Journal(folder) as journal:
        owner = Owner(folder)
        maker = Maker(fn, folder, owner.token, checked, text, options)
        try:
            if overwrite or not _is_built(folder, plan, source):
                _begin(folder, journal, owner, plan, start_over=overwrite, resume=resume, sync=sync)
                _make_all(maker, journal, source, progress, workers)
                _commit(maker, journal, owner, plan | source.identity(), overwrite=overwrite)
            journal.remove()
        finally:
            finished = {shard.name for shard in shards_in(folder)}
            owner.remove_unlisted(finished | Manifest.names(folder))
            owner.release()
    return _opened(folder, checked)


def _check(folder: Path, fn: Any, inputs: Any, workers: Any, chunk: Any) -> None:
    check_target(folder)
    if folder.suffix == SUFFIX:
        message = f"{folder}: a data set that is built is a directory, not one {SUFFIX} file"
        raise ValueError(message)
    if not callable(fn):
        message = f"fn is a function of an input, not {type(fn).__name__}"
        raise TypeError(message)
    if isinstance(inputs, str | bytes) or not isinstance(inputs, Iterable):
        message = f"inputs is a list or another iterable, not {type(inputs).__name__}"
        raise TypeError(message)
    for name, number, least in (("workers", workers, 0), ("chunk", chunk, 1)):
        if number is not None and (type(number) is not int or number < least):
            message = f"{name} is a number, {least} or more, not {number!r}"
            raise ValueError(message)


def _is_built(folder: Path, plan: dict[str, Any], source: Inputs) -> bool:
    """Whether the data set is there already."""
    found = Manifest.find(folder)
    if found is None:
        return False
    if found.build is None:
        message = (
            f"{folder}: there is a data set already that was not built, or was changed since; "
            f"{_REPLACE}"
        )
        raise FileExistsError(message)
    for _ in source.tasks():
        pass
    check_same(folder, found.build, plan | source.identity(), _REPLACE)
    return True


def _begin(
    folder: Path,
    journal: Journal,
    owner: Owner,
    plan: dict[str, Any],
    *,
    start_over: bool,
    resume: bool,
    sync: bool,
) -> None:
    """Say in the journal what is being built, unless it says so."""
    if journal.begun == plan and resume:
        return
    if journal.begun is not None and resume and not start_over:
        check_same(folder, journal.begun, plan, _AGAIN)
    superseded = owner.take_over(_names_in(journal))
    journal.begin(plan, sync=sync)
    owner.remove(superseded)


class _Tally:
    """What is made so far, chunks that are being worked on included."""

    def __init__(self, journal: Journal, progress: Progress, label: str, total: int | None) -> None:
        self._made = [0, 0, 0]
        for chunk in journal.chunks.values():
            self.add(chunk)
        self._meter = Meter(progress, label, total, done=self._made[2], rows=self._made[0])

    def add(self, chunk: Chunk) -> None:
        """Count a chunk that is finished."""
        rows, nbytes = (
            sum(getattr(one, what) for one in chunk.shards) for what in ("rows", "nbytes")
        )
        for k, number in enumerate((rows, nbytes, chunk.inputs)):
            self._made[k] += number

    def tell(self, busy: Iterable[tuple[Task, Sequence[int]]]) -> None:
        """Show how far it is."""
        rows, nbytes, inputs = self._made
        for task, state in busy:
            if state[0] >= task.first:
                rows, nbytes = rows + state[1], nbytes + state[2]
                inputs += state[0] - task.first
        self._meter.update(rows, nbytes, inputs)

    def finish(self) -> None:
        """Show how it ended."""
        self._meter.finish(*self._made)


def _make_all(
    maker: Maker, journal: Journal, source: Inputs, progress: Progress, workers: int | None
) -> None:
    """Make what the journal does not tell of."""
    tally = _Tally(journal, progress, str(maker.folder), source.total)
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
        error.add_note(
            f"{maker.folder}: {len(journal.chunks)} chunks of {source.chunk} inputs are "
            "finished; the same call goes on from there"
        )
        raise
    if any(number >= source.num_chunks for number in journal.chunks):
        message = (
            f"{maker.folder}: this was begun with more than {source.num_inputs} inputs; {_AGAIN}"
        )
        raise ValueError(message)
    tally.finish()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _missing(folder: Path, journal: Journal, source: Inputs) -> Iterator[Task]:
    """Yield the chunks that are to be made, also those whose files are gone or cut short."""
    for task in source.tasks():
        known = journal.chunks.get(task.number)
        if known is None:
            yield task
            continue
        if (known.inputs, known.digest) != (len(task.inputs), task.digest):
            last = task.first + len(task.inputs) - 1
            message = f"{folder}: inputs {task.first} to {last} were others before; {_AGAIN}"
            raise ValueError(message)
        paths = [folder / shard.name for shard in known.shards]
        sizes = [path.stat().st_size if path.is_file() else None for path in paths]
        if sizes != [shard.nbytes for shard in known.shards]:
            remove(folder, [shard.name for shard in known.shards])
            yield task


_Made: TypeAlias = Generator[tuple[Task, tuple[Shard, ...]], None, None]


def _alone(maker: Maker, tasks: Iterator[Task], tally: _Tally) -> _Made:
    state = [-1, 0, 0]
    for task in tasks:
        yield task, maker.make(task, state, functools.partial(tally.tell, [(task, state)]))


def _together(maker: Maker, tasks: Iterator[Task], tally: _Tally, count: int) -> _Made:
    from ingot.dataset.crew import Crew  # noqa: PLC0415 -- it loads multiprocessing

    yield from Crew(maker, count).run(tasks, tally.tell)


def _commit(
    maker: Maker, journal: Journal, owner: Owner, built: dict[str, Any], *, overwrite: bool
) -> None:
    """Make the data set of all shards appear."""
    sync = maker.options.sync
    shards = [shard for _, chunk in sorted(journal.chunks.items()) for shard in chunk.shards]
    if not shards:
        writer = maker.writer(0)
        writer.finish(at_least_one=True)
        shards = writer.finished
    new = Manifest(dict(maker.spec), tuple(shards), json.loads(maker.metadata), build=built)
    with folders.locked(maker.folder):
        found = Manifest.find(maker.folder)
        if found is not None and not overwrite:
            message = f"{maker.folder}: another writer has made a data set here meanwhile"
            raise FileExistsError(message)
        superseded = owner.take_over(Manifest.names(maker.folder))
        new.commit(maker.folder, overwrite=True, sync=sync)
    owner.remove(superseded)


def _names_in(journal: Journal) -> set[str]:
    return {shard.name for chunk in journal.chunks.values() for shard in chunk.shards}


def _opened(folder: Path, spec: Spec) -> Dataset:
    manifest = Manifest.read(folder)
    for shard in manifest.shards:
        shard.check(folder)
    paths = [str(folder / shard.name) for shard in manifest.shards]
    native = NativeRows(paths, partial=False)
    if native.fields() != spec.stored():
        message = f"{folder}: the fields of its files are not those of {spec!r}"
        raise FormatError(message, str(folder))
    source = Stored(native, spec.shut(), paths, allow_pickle=False, folder=str(folder))
    manifest.check(folder, len(source), source.spec, source.ids)
    return Dataset(source)
