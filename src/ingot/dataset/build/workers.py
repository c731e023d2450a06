"""Worker processes that make the chunks of a data set in parallel."""

import multiprocessing
import pickle
import traceback
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from ingot.dataset.build.maker import Maker, Task, place_of
from ingot.dataset.manifest import Shard
from ingot.errors import WorkerError
from ingot.processes import GUARD, how_it_died, portable, settle_in

_PAUSE_S = 0.2
_PATIENCE_S = 5.0
_HINT = f"workers must be able to import fn: define it at the top level of a module, and {GUARD}"


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    pipe: "Connection[Any, Any]"
    state: Any
    task: Task | None = None


class Workers:
    """A limited number of worker processes, each of which makes one chunk at a time.

    They are spawned, so that threads of this process do not affect them, and they die with
    this process.

    Raises:
        TypeError: The function cannot be sent to another process.
    """

    def __init__(self, maker: Maker, size: int) -> None:
        try:
            pickle.dumps(maker)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"fn and the codecs must be picklable for workers: {error}; define them at "
                "the top level of a module, or pass workers=0"
            ) from error
        self._maker = maker
        self._size = size
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []

    def run(
        self, tasks: Iterator[Task], tell: Callable[[list[tuple[Task, list[int]]]], object]
    ) -> Generator[tuple[Task, tuple[Shard, ...]], None, None]:
        """Yield chunks as they finish, in any order.

        Args:
            tasks: The chunks.
            tell: Called several times a second with the chunks in progress, and for each the
                current input, the rows and the bytes.

        Raises:
            WorkerError: A worker process died.
            Exception: Whatever the function raised.
        """
        try:
            self._employ(tasks)
            while busy := [one for one in self._workers if one.task is not None]:
                ready = wait([one.pipe for one in busy], _PAUSE_S)
                tell([(one.task, list(one.state)) for one in busy if one.task is not None])
                errors = []
                for worker in busy:
                    if worker.pipe in ready and worker.task is not None:
                        shards, error = self._outcome(worker)
                        errors += [] if error is None else [error]
                        if shards is not None:
                            yield worker.task, shards
                        worker.task = None
                if errors:
                    raise errors[0]  # noqa: TRY301 -- the others are killed below
                self._employ(tasks)
        except BaseException:
            for worker in self._workers:
                worker.process.kill()
            raise
        finally:
            self._dismiss()

    def _employ(self, tasks: Iterator[Task]) -> None:
        idle = [one for one in self._workers if one.task is None]
        for _ in range(len(idle) + self._size - len(self._workers)):
            task = next(tasks, None)
            if task is None:
                return
            worker = idle.pop() if idle else self._hire()
            worker.task = task
            try:
                worker.pipe.send(task)
            except BrokenPipeError:
                raise self._death(worker) from None

    def _hire(self) -> _Worker:
        state = self._context.RawArray("q", [-1, 0, 0])
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._maker, state))
        process.start()
        theirs.close()
        worker = _Worker(process, ours, state)
        self._workers.append(worker)
        return worker

    def _outcome(self, worker: _Worker) -> tuple[tuple[Shard, ...] | None, Exception | None]:
        """Return the shards that a worker has made, or the exception that stopped it."""
        try:
            shards, error, trace = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            return None, self._death(worker)
        if error is not None:
            error.add_note(f"in a worker:\n{trace}")
        return shards, error

    def _death(self, worker: _Worker) -> WorkerError:
        how = how_it_died(worker.process)
        where, number = "before it started", worker.state[0]
        if worker.task is not None and number >= worker.task.first:
            where = place_of(worker.task, number)
        hint = "" if number >= 0 else f"; {_HINT}"
        path = str(self._maker.folder)
        return WorkerError(f"{path}: a worker process died {how} {where}{hint}", path)

    def _dismiss(self) -> None:
        for worker in self._workers:
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(_PATIENCE_S)
            worker.process.kill()
            worker.process.join()
            worker.process.close()
        self._workers = []


def _work(pipe: "Connection[Any, Any]", maker: Maker, state: Any) -> None:
    """Make chunks until the pipe is closed."""
    settle_in()
    while True:
        shards, error, trace = None, None, ""
        try:
            task = pipe.recv()
            shards = maker.make(task, state, _nothing)
        except EOFError:
            return
        except Exception as raised:  # noqa: BLE001 -- whatever it is, the parent raises it
            error, trace = portable(raised), traceback.format_exc()
        pipe.send((shards, error, trace))


def _nothing() -> None:
    pass
